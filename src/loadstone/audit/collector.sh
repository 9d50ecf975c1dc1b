#!/bin/sh
# Prints, as one JSON document, how an identity service is set up on this host.
#
# Read-only: it changes nothing and installs nothing. Secrets are dropped before anything is
# printed: comments, passwords, keys, and the credentials in URLs.
#
# Run it by hand:  sh collector.sh > facts.json
# Settings, all optional, as environment variables:
#   AUDIT_KEYSTONE_CONF  configuration files of Keystone, one a line
#   AUDIT_PYTHON         the Python interpreter that Keystone runs with
#   AUDIT_PIDS           only these processes and their descendants count
#   AUDIT_ETC            folder in place of /etc
#   AUDIT_CGROUPS        folder in place of /sys/fs/cgroup
#   AUDIT_NAME           name of the host in the results
#   AUDIT_QUICK          leave out what takes long: the cost of a password, doctor, validator
main() {
set -u
LC_ALL=C
export LC_ALL
etc=${AUDIT_ETC:-/etc}
cgroups=${AUDIT_CGROUPS:-/sys/fs/cgroup}
separator=
pids=
table=
root=
balancer=
conf=
keystones=
known=
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

printf '{"loadstone_facts": 1, "sections": {'
emit meta meta
emit before counters
emit cpu cpu
emit memory memory
emit sysctl sysctls
emit system system
# A process may end while it is read; that is no error.
pids=$(known_pids 2>/dev/null)
table=$(processes 2>/dev/null)
root=$(container_of '^(uwsgi|apache2|httpd|gunicorn|granian|[(]?wsgi|keystone)' keystone 2>/dev/null)
balancer=$(container_of '^haproxy$' haproxy 2>/dev/null)
conf=$(keystone_conf 2>/dev/null)
keystones=$(keystone_pids 2>/dev/null)
emit processes printf '%s\n' "$table"
emit keystone keystone_files
emit limits keystone_limits
emit domains domain_files
emit uwsgi uwsgi_files
emit apache apache_files
emit haproxy haproxy_files
emit fernet fernet
emit consumers consumers
emit nova nova
emit keycloak keycloak
emit keycloak_conf keycloak_file
emit cron cron
emit rotation rotation
emit rabbitmq rabbitmq
emit mysql mysql_client
emit service service
emit after counters
printf '\n}, "complete": true}\n'
}

# Print the output of a command as a JSON string, at most 400 kB of it.
emit() {
    name=$1
    shift
    printf '%s\n"%s": "' "$separator" "$name"
    separator=,
    "$@" 2>/dev/null </dev/null | head -c 400000 | tr -d '\000-\010\013-\037\177' |
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\t/g' -e 's/$/\\n/' | tr -d '\n'
    printf '"'
}

limited() {
    seconds=$1
    shift
    if command -v timeout >/dev/null; then timeout "$seconds" "$@"; else "$@"; fi
}

meta() {
    echo "name=${AUDIT_NAME:-$(hostname 2>/dev/null || uname -n)}"
    echo "kernel=$(uname -r)"
    echo "uid=$(id -u)"
    echo "time=$(date +%s)"
    if [ -f /.dockerenv ] || [ -f /run/.containerenv ] || grep -qs -e docker -e kubepods /proc/1/cgroup
    then echo container=1; else echo container=0; fi
    if grep -qs '^flags.* hypervisor' /proc/cpuinfo; then echo virtual=1; else echo virtual=0; fi
}

counters() {
    head -n 1 /proc/stat
    awk '/^TcpExt/ { if (!names) { names = split($0, name); next }
        for (i = 2; i <= names; i++) if (name[i] ~ /^Listen/) print name[i], $i }' /proc/net/netstat
    grep -e '^pswpin' -e '^pswpout' /proc/vmstat
    for file in "$cgroups"/cpu.stat "$cgroups"/cpu/cpu.stat; do
        if [ -r "$file" ]; then grep -e '^nr_' "$file"; break; fi
    done
}

cpu() {
    echo "cpus=$(getconf _NPROCESSORS_ONLN || nproc)"
    for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
        [ -r "$file" ] && echo "governor=$(cat "$file")"
    done
    # In a container, the first process has its CPUs; this one may have others, or fewer.
    [ -r /proc/1/status ] && sed -n 's/^Cpus_allowed_list:[[:space:]]*/allowed=/p' /proc/1/status
    group=$cgroups/cpu
    if [ -r "$cgroups/cpu.max" ]; then echo "quota=$(cat "$cgroups/cpu.max")"
    elif [ -r "$group/cpu.cfs_quota_us" ]; then echo "quota=$(cat "$group/cpu.cfs_quota_us" "$group/cpu.cfs_period_us" | tr '\n' ' ')"; fi
}

# Memory of the machine; in a container its limit and use, too. Cached files are given back.
memory() {
    cat /proc/meminfo
    if [ -r "$cgroups/memory.max" ]; then
        cgroup_memory "$cgroups" memory.max memory.current inactive_file
    elif [ -r "$cgroups/memory/memory.limit_in_bytes" ]; then
        cgroup_memory "$cgroups/memory" memory.limit_in_bytes memory.usage_in_bytes total_inactive_file
    fi
}

cgroup_memory() {
    { echo "limit $(cat "$1/$2")"; echo "used $(cat "$1/$3")"; cat "$1/memory.stat"; } | awk -v cached="$4" '
        $2 ~ /^[0-9]+$/ { bytes[$1] = $2 }
        END { if ("limit" in bytes) {
            printf "CgroupLimit: %.0f kB\n", bytes["limit"] / 1024
            printf "CgroupUsed: %.0f kB\n", (bytes["used"] - bytes[cached]) / 1024 } }'
}

# Limits of the control groups of a process and of those above them (man 7 cgroups:
# ID:CONTROLLERS:PATH): "cpu QUOTA PERIOD" in microseconds, "memory BYTES".
limits_of() {
    while IFS=: read -r _ controllers path; do
        case ,$controllers, in
            ,,) limits_up "$cgroups" "$path" ;;
            *,cpu,*) limits_up "$cgroups/cpu" "$path" ;;
            *,memory,*) limits_up "$cgroups/memory" "$path" ;;
        esac
    done <"/proc/$1/cgroup" | grep -x -e 'cpu [0-9]* [0-9]*' -e 'memory [0-9]*'
}

limits_up() {
    group=$2
    while :; do
        [ -r "$1$group/cpu.max" ] && echo "cpu $(cat "$1$group/cpu.max")"
        [ -r "$1$group/cpu.cfs_quota_us" ] &&
            echo "cpu $(cat "$1$group/cpu.cfs_quota_us") $(cat "$1$group/cpu.cfs_period_us")"
        [ -r "$1$group/memory.max" ] && echo "memory $(cat "$1$group/memory.max")"
        [ -r "$1$group/memory.limit_in_bytes" ] && echo "memory $(cat "$1$group/memory.limit_in_bytes")"
        [ "${group:-/}" = / ] && break
        group=${group%/*}
    done
}

# Of Keystone's processes, those of the oldest.
keystone_limits() {
    for pid in $keystones; do limits_of "$pid"; break; done
}

sysctls() {
    for name in net/core/somaxconn net/core/netdev_max_backlog net/ipv4/tcp_max_syn_backlog \
        net/ipv4/ip_local_port_range net/ipv4/tcp_tw_reuse vm/swappiness; do
        [ -r "/proc/sys/$name" ] && echo "$name=$(cat "/proc/sys/$name")"
    done
    grep '^TCP:' /proc/net/sockstat
}

system() {
    if command -v tuned-adm >/dev/null; then
        echo "tuned=$(limited 5 tuned-adm active | sed -n 's/.*[Pp]rofile: *//p')"
    fi
    command -v getenforce >/dev/null && echo "selinux=$(getenforce)"
    if command -v chronyc >/dev/null; then
        limited 5 chronyc -n tracking | sed -n -e 's/^Leap status *: */leap=/p' \
            -e 's/^System time *: *\([0-9.]*\) seconds.*/offset=\1/p'
    fi
    command -v timedatectl >/dev/null && echo "ntp=$(limited 5 timedatectl show -p NTPSynchronized --value)"
}

# Processes that the rules speak of: "pid ppid" of each. Those that have ended and wait for their
# parent (state Z or X) do not count.
known_pids() {
    cat /proc/[0-9]*/stat 2>/dev/null |
        sed -n 's/^\([0-9]*\) (\(.*\)) [A-WY] \([0-9]*\) .*/\1 \3 \2/p' | awk -v only="${AUDIT_PIDS:-}" '
        { parent[$1] = $2; name[$1] = $3; for (i = 4; i <= NF; i++) name[$1] = name[$1] "_" $i }
        function wanted(pid,   depth) {
            if (only == "") return 1
            for (depth = 0; pid > 1 && depth < 50; depth++) {
                if (index(" " only " ", " " pid " ")) return 1
                pid = parent[pid]
            }
            return 0
        }
        END { for (pid in name) {
            is_server = name[pid] ~ /^(uwsgi|apache2|httpd|nginx|gunicorn|granian|haproxy|mariadbd|mysqld|postgres|memcached|redis-server|keystone|beam|java|python|\(wsgi|wsgi)/
            if (wanted(pid) && (is_server || only != "")) print pid, parent[pid] } }'
}

# A line per process: pid, parent, resident kB, threads, limit of open files, name, arguments.
processes() {
    status=
    for pid in $(echo "$pids" | cut -d ' ' -f 1); do
        [ -r "/proc/$pid/status" ] && status="$status /proc/$pid/status"
        [ -r "/proc/$pid/limits" ] && status="$status /proc/$pid/limits"
    done
    [ -n "$status" ] || return
    {
        # grep goes on where a process has ended meanwhile; awk would not.
        # shellcheck disable=SC2086  # paths of /proc have no spaces
        grep -s -H -e '^Name:' -e '^PPid:' -e '^VmRSS:' -e '^Threads:' -e '^Max open files' $status |
            awk '{ split($0, path, "/"); pid = path[3]; sub(/^[^:]*:/, ""); split($0, word, /[ \t]+/) }
            /^Name:/ { sub(/^Name:[ \t]*/, ""); name[pid] = $0 }
            /^PPid:/ { parent[pid] = word[2] }
            /^VmRSS:/ { rss[pid] = word[2] }
            /^Threads:/ { threads[pid] = word[2] }
            /^Max open files/ { files[pid] = word[4] }
            END { for (pid in name) print "S\t" pid "\t" parent[pid] "\t" rss[pid] + 0 "\t" threads[pid] + 0 "\t" files[pid] + 0 "\t" name[pid] }'
        for pid in $(echo "$pids" | cut -d ' ' -f 1); do
            [ -r "/proc/$pid/cmdline" ] || continue
            printf 'A\t%s\t' "$pid"
            tr '\000\t\n' '\t  ' <"/proc/$pid/cmdline"
            echo
        done | mask_arguments
    } | awk '
        /^S\t/ { split($0, field, "\t"); sub(/^S\t/, ""); known[field[2]] = $0; name[field[2]] = field[7]; next }
        { split($0, field, "\t"); pid = field[2]; sub(/^A\t[0-9]*\t/, ""); sub(/\t*$/, "")
          if (!(pid in known)) next
          if (name[pid] == "java") {  # its arguments hold passwords of key stores, and options of any kind
              if (!match($0, /-Dkc\.home\.dir=[^\t]*/)) next
              $0 = substr($0, RSTART, RLENGTH) }
          if (name[pid] ~ /^beam/) $0 = ""  # they may hold the cookie of the cluster
          if (name[pid] ~ /python/ && $0 !~ /keystone|gunicorn|granian|wsgi|single_server/) next
          print known[pid] "\t" $0 }'
}

# Where the files of processes can be read that run in a container of this host, by their name and a
# word of their arguments; nothing if one of them has the files of the host. A root folder without
# configuration is that of a worker that called chroot (haproxy's).
container_of() {
    here=$(stat -L -c %d:%i /)
    printf '%s\n' "$table" | awk -F '\t' -v name="$1" -v word="$2" '$6 ~ name && index($0, word) { print $1 }' |
        while read -r pid; do
            # Only root may see the root folder of others' processes.
            there=$(stat -L -c %d:%i "/proc/$pid/root/") || there=$here
            [ "$there" = "$here" ] || [ -d "/proc/$pid/root$etc" ] || continue
            if [ "$there" = "$here" ]; then echo -; else echo "/proc/$pid/root"; fi
        done | sort | head -n 1 | grep -v '^-$'
}

# The file of an argument: that of the container if it is there.
inside() {
    if [ -n "$1" ] && [ -e "$1$2" ]; then echo "$1$2"; else echo "$2"; fi
}

mask_arguments() {
    sed -e 's#://[^	 ]*@#://***@#g' \
        -e 's/\(--[a-z-]*\(pass\|passwd\|password\|secret\|token\|key\)\)[=	][^	]*/\1=***/g' \
        -e 's/\([A-Za-z0-9_]*\(PASS\|PASSWD\|PASSWORD\|SECRET\|TOKEN\|KEY\|pass\|passwd\|password\|secret\|token\)\)=[^	]*/\1=***/g'
}

# Settings of a file in INI form with their line numbers, without comments and secrets; the second
# argument is its name.
ini() {
    echo "@ ${2:-$1}"
    if [ ! -r "$1" ]; then echo "! cannot be read by uid $(id -u)"; return; fi
    awk '
        # A password may hold any sign but white space: the last @ ends the credentials.
        function plain(text) { gsub(/:\/\/[^ \t]*@/, "://***@", text); return text }
        function is_secret(line,   key) {
            line = tolower(line)
            if (line ~ /^[ \t]*["\047]?backend_argument[ \t]*[=:][ \t]*["\047]?(password|username|secret)/) return 1
            key = line
            sub(/[ \t]*[=:].*/, "", key)
            return key ~ /(pass|passwd|password|passphrase|secret|hmac(_keys)?|admin_token|connection|connection_string|transport_url|_key|private|credential|credentials)$/ }
        /^[ \t]*[#;]/ || /^[ \t\r]*$/ { next }
        /^[ \t]/ { if (!hidden && !is_secret($0)) print NR "\t" plain($0); next }
        { hidden = is_secret($0)
          if ($0 ~ /^\[/) hidden = 0
          if (!hidden) { print NR "\t" plain($0); next }
          key = tolower($0); sub(/[ \t]*[=:].*/, "", key)
          scheme = ""; if (match($0, /[a-z0-9+]+:\/\//)) scheme = substr($0, RSTART, RLENGTH)
          print NR "\t" key " = " scheme "***" }' "$1"
}

keystone_conf() {
    if [ -n "${AUDIT_KEYSTONE_CONF:-}" ]; then echo "$AUDIT_KEYSTONE_CONF"; return; fi
    printf '%s\n' "$table" | awk -F '\t' '/keystone|uwsgi|wsgi/ { print $1 }' | while read -r pid; do
        [ -r "/proc/$pid/environ" ] && tr '\000' '\n' <"/proc/$pid/environ" | conf_of_environment
    done | awk '!seen[$0]++' | while read -r file; do inside "$root" "$file"; done | grep . && return
    if is_closed "$root$etc/keystone"; then echo "$root$etc/keystone/keystone.conf"; return; fi
    for file in "$root$etc"/keystone/keystone.conf "$root$etc"/keystone/keystone.conf.d/*.conf; do
        [ -e "$file" ] && echo "$file"
    done
}

# The files that Keystone reads with this environment, in its order (keystone/server/flask/core.py).
conf_of_environment() {
    awk '
        { value = substr($0, index($0, "=") + 1); gsub(/^[ \t]+|[ \t]+$/, "", value) }
        /^OS_KEYSTONE_CONFIG_DIR=/ { folder = value }
        /^OS_KEYSTONE_CONFIG_FILES=/ { files = value }
        END {
            if (folder != "" && files == "") files = "keystone.conf"
            count = split(files, name, ";")
            for (i = 1; i <= count; i++) {
                gsub(/^[ \t]+|[ \t]+$/, "", name[i])
                if (name[i] == "") continue
                print (folder != "" && name[i] !~ /^\//) ? folder "/" name[i] : name[i]
            } }'
}

keystone_files() {
    [ -n "$conf" ] && printf '%s\n' "$conf" | while read -r file; do ini "$file"; done
    for pid in $keystones; do
        set_here=$(set_by_environment "$pid")
        [ -n "$set_here" ] && printf '%s\n' "$set_here" | ini /dev/stdin "/proc/$pid/environ"
    done
}

# The oldest process of each environment of Keystone whose settings can be read.
keystone_pids() {
    printf '%s\n' "$table" | awk -F '\t' '/keystone/ { print $1 }' | sort -n | while read -r pid; do
        set_here=$(set_by_environment "$pid" | cksum)
        case $known in *"<$set_here>"*) ;; *) echo "$pid" ;; esac
        known="$known<$set_here>"
    done
}

# Settings of a process' environment in INI form: OS_GROUP__OPTION counts more than what any file
# says (oslo.config, sources/_environment.py).
set_by_environment() {
    [ -r "/proc/$1/environ" ] && tr '\000\n' '\n ' <"/proc/$1/environ" |
        sed -n 's/^OS_\([A-Z0-9_]*[A-Z0-9]\)__\([A-Z0-9][A-Z0-9_]*=.*\)/\1 \2/p' | awk '{
            group = $1; sub(/^[^ ]* /, ""); at = index($0, "=")
            print "[" (group == "DEFAULT" ? group : tolower(group)) "]"
            print tolower(substr($0, 1, at - 1)) " = " substr($0, at + 1) }'
}

# The value of an option of Keystone; the last one counts.
option() {
    { printf '%s\n' "$conf" | while read -r file; do cat "$file"; echo; done
      for pid in $keystones; do set_by_environment "$pid"; done
    } | awk -v section="$1" -v name="$2" '
        /^\[/ { inside = index(tolower($0), "[" section "]") == 1 }
        inside && $0 ~ "^" name "[ \t]*[=:]" {
            sub(/^[^=:]*[=:][ \t]*/, ""); gsub(/^["\047]|["\047]?[ \t\r]*$/, ""); print }' | tail -n 1
}

# Settings of single domains, of which those of LDAP matter.
domain_files() {
    folder=$(option identity domain_config_dir)
    if [ -n "$folder" ]; then folder=$(inside "$root" "$folder"); else folder=$root$etc/keystone/domains; fi
    if is_closed "$folder"; then
        echo "@ $folder"
        echo "! cannot be read by uid $(id -u)"
        return
    fi
    for file in "$folder"/keystone.*.conf; do [ -e "$file" ] && ini "$file"; done
}

# Arguments that follow an option, in the command lines of all processes of a name.
arguments_after() {
    printf '%s\n' "$table" | awk -F '\t' -v name="$1" -v option="$2" '$6 ~ "^(" name ")$" {
        for (i = 7; i <= NF; i++) {
            if ($i == option) print $(i + 1)
            else if (index($i, option "=") == 1) print substr($i, length(option) + 2)
        } }'
}

uwsgi_files() {
    { arguments_after 'uwsgi.*' --ini
      printf '%s\n' "$table" | awk -F '\t' '$6 ~ /^uwsgi/ { for (i = 7; i <= NF; i++) if ($i ~ /\.ini$/) print $i }'
      if [ -z "${AUDIT_PIDS:-}" ]; then
          for file in "$root$etc"/keystone/*uwsgi*.ini "$root$etc"/uwsgi/*keystone*.ini \
              "$root$etc"/uwsgi/apps-enabled/*keystone*; do [ -e "$file" ] && echo "${file#"$root"}"; done
      fi; } | sort -u | while read -r file; do inside "$root" "$file"; done | while read -r file; do
        echo "@ $file"
        if [ ! -r "$file" ]; then echo "! cannot be read by uid $(id -u)"; continue; fi
        awk '/^\[/ || /^[ \t]*(processes|workers|threads|master|lazy-apps|lazy|enable-threads|thunder-lock|listen|buffer-size|harakiri|max-requests|stats|module|wsgi-file|mount|virtualenv|home|cheaper|http-socket|socket|add-header)[ \t]*=/ { sub(/^[ \t]*/, ""); print NR "\t" $0 }' "$file"
    done
}

apache_files() {
    { arguments_after 'apache2|httpd' -f
      if [ -z "${AUDIT_PIDS:-}" ]; then
          for file in "$root$etc"/apache2/apache2.conf "$root$etc"/apache2/*-enabled/*.conf \
              "$root$etc"/apache2/mods-enabled/*.load "$root$etc"/httpd/conf/httpd.conf \
              "$root$etc"/httpd/conf.d/*.conf "$root$etc"/httpd/conf.modules.d/*.conf; do
              [ -e "$file" ] && echo "${file#"$root"}"
          done
      fi; } | sort -u | while read -r file; do inside "$root" "$file"; done | while read -r file; do
        echo "@ $file"
        if [ ! -r "$file" ]; then echo "! cannot be read by uid $(id -u)"; continue; fi
        # A backslash joins a line with the next one. Names of directives may have any case.
        awk '{ if (text == "") first = NR; sub(/\r$/, ""); text = text $0; if (sub(/\\$/, " ", text)) next
            $0 = text; text = ""; name = tolower($0) }
            name ~ /^[ \t]*(wsgidaemonprocess|wsgiprocessgroup|wsgiscriptalias|maxrequestworkers|maxclients|serverlimit|threadsperchild|maxconnectionsperchild|maxrequestsperchild|keepalive|proxypass|loadmodule|listen|<virtualhost|<ifmodule|<\/ifmodule)/ { gsub(/secret=[^ \t]*/, "secret=***"); print first "\t" $0 }' "$file"
    done
}

haproxy_files() {
    # haproxy reads the files in the order of its arguments, and those of a folder by their names.
    named=$(arguments_after haproxy -f)
    if [ -z "$named${AUDIT_PIDS:-}" ] && [ -e "$balancer$etc/haproxy/haproxy.cfg" ]; then named=$etc/haproxy/haproxy.cfg; fi
    printf '%s\n' "$named" | grep . | awk '!seen[$0]++' | while read -r file; do
        file=$(inside "$balancer" "$file")
        if [ ! -d "$file" ] || is_closed "$file"; then echo "$file"; continue; fi
        for one in "${file%/}"/*.cfg; do [ -e "$one" ] && echo "$one"; done
    done | while read -r file; do
        echo "@ $file"
        if [ ! -r "$file" ] || [ -d "$file" ]; then echo "! cannot be read by uid $(id -u)"; continue; fi
        awk '/^[ \t]*(global|defaults|frontend|backend|listen|cache|crt-store|fcgi-app|http-errors|log-forward|mailers|peers|program|resolvers|ring|traces|userlist|maxconn|backlog|nbthread|balance|option|http-check|timeout|retries|stick|server|server-template|default-server|bind|default_backend|use_backend|mode|ulimit-n|stats[ \t]+socket)([ \t]|$)/ {
            # A comment begins at any # that is neither quoted nor escaped.
            if (match($0, /[^\\]#/)) {
                rest = substr($0, 1, RSTART)
                if (gsub(/["\047]/, "&", rest) % 2 == 0) $0 = rest }
            # What a check sends may hold credentials.
            if ($1 == "http-check" || ($1 == "option" && $2 == "httpchk")) $0 = $1 " " $2
            print NR "\t" $0 }' "$file"
    done
}

# Fernet keys: number, mode, owner, age and the start of a digest; never what is in them.
fernet() {
    repository=$(option fernet_tokens key_repository)
    repository=$(inside "$root" "${repository:-$etc/keystone/fernet-keys}")
    if [ ! -d "$repository" ]; then echo "! $repository is not a folder that uid $(id -u) can see"; return; fi
    if [ ! -r "$repository" ]; then echo "! $repository cannot be read by uid $(id -u)"; return; fi
    echo "@ $repository $(stat -L -c '%a %u' "$repository")"
    printf '%s\n' "$table" | awk -F '\t' '/keystone/ && $6 ~ /^(uwsgi|apache2|httpd|gunicorn|granian|\(?wsgi)/ { print $1 }' |
        while read -r pid; do echo "user $(stat -c %u "/proc/$pid")"; done | sort -u
    for file in "$repository"/*; do
        number=${file##*/}
        case $number in *[!0-9]*) continue ;; esac
        digest=-
        if [ "$number" != 0 ] && [ -r "$file" ]; then
            digest=$(sha256sum <"$file" | cut -c1-12)
        fi
        echo "$number $(stat -L -c '%a %u %Y' "$file") $digest"
    done
}

# Services of OpenStack that validate tokens; of their files alone is it told that they cannot be
# read, because any other file may be none of a service.
consumers_of='nova|neutron|glance|cinder|placement|heat|ironic|ironic-inspector|octavia|barbican|manila|magnum|designate|aodh|gnocchi|ceilometer|zun|trove|mistral|masakari|watcher|cloudkitty|blazar|senlin|tacker|vitrage|zaqar|cyborg|adjutant'

# How other services on this host validate tokens.
consumers() {
    for file in "$etc"/*/*.conf; do
        folder=${file%/*}
        name=${folder##*/}
        if [ ! -r "$file" ]; then
            case "|$consumers_of|" in *"|$name|"*)
                echo "@ $file"
                echo "! cannot be read by uid $(id -u)" ;;
            esac
            continue
        fi
        # A sample of oslo-config-generator has the section, and says nothing of Keystone in it.
        awk -v file="$file" '
            /^\[/ { inside = tolower($0) ~ /^\[keystone_authtoken\]/ }
            !inside { next }
            /^(auth_url|www_authenticate_uri|auth_uri|auth_type|auth_plugin|auth_section)[ \t]*[=:]/ { is_used = 1 }
            /^[ \t]/ { if (is_shown) text = text NR "\t" $0 "\n"; next }
            { is_shown = /^(memcached_servers|memcache_servers|token_cache_time)[ \t]*[=:]/ }
            is_shown { text = text NR "\t" $0 "\n" }
            END { if (is_used) printf "@ %s\n%s", file, text }' "$file"
    done
    for name in $(echo "$consumers_of" | tr '|' ' '); do
        is_closed "$etc/$name" || continue
        echo "@ $etc/$name/$name.conf"
        echo "! cannot be read by uid $(id -u)"
    done
}

# Whether there is a folder whose files this user may not even see.
is_closed() {
    [ -d "$1" ] || return 1
    [ ! -r "$1" ] || [ ! -x "$1" ]
}

nova() {
    [ -e "$etc/nova/nova.conf" ] || is_closed "$etc/nova" || return
    # The rules are those of compute nodes; controllers have a nova.conf, too.
    services=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\000' '\n' | sed -n 's|^\(.*/\)*\(nova-[a-z]*\)$|\2|p')
    case "$services" in *nova-compute* | "") ;; *) return ;; esac
    echo "@ $etc/nova/nova.conf"
    if [ ! -r "$etc/nova/nova.conf" ]; then echo "! cannot be read by uid $(id -u)"; return; fi
    awk '/^\[/ || /^(vif_plugging_is_fatal|vif_plugging_timeout|reserved_host_memory_mb|ram_allocation_ratio|initial_ram_allocation_ratio)[ \t]*[=:]/ { print NR "\t" $0 }' "$etc/nova/nova.conf"
}

# The first Keycloak on this host.
keycloak_process() {
    printf '%s\n' "$table" | awk -F '\t' '$6 == "java" && /-Dkc\.home\.dir=/ { print $1; exit }'
}

# Its options of arguments, environment and build. Only those that the rules need: no addresses, no
# names, no passwords.
keycloak_options=' db db-pool-initial-size db-pool-min-size db-pool-max-size http-max-queued-requests log-level metrics-enabled tracing-enabled tracing-sampler-ratio '

keycloak() {
    pid=$(keycloak_process)
    [ -n "$pid" ] || return
    echo "pid=$pid"
    if [ ! -r "/proc/$pid/environ" ]; then echo "problem=its options cannot be read by uid $(id -u)"; return; fi
    home=/proc/$pid/root$(keycloak_home "$pid")
    for file in "$home"/lib/lib/main/org.keycloak.keycloak-core-*.jar; do
        file=${file##*-core-}
        echo "version=${file%.jar}"
    done
    runtime=$(readlink "/proc/$pid/exe")
    sed -n 's/^JAVA_VERSION="\(.*\)"/java=\1/p' "/proc/$pid/root${runtime%/bin/java}/release"
    tr '\000' '\n' <"/proc/$pid/cmdline" | sed -n -e 's/^-Xmx\([0-9]*[kKmMgG]\{0,1\}\)$/heap=\1/p' \
        -e 's/^-XX:MaxHeapSize=\([0-9]*[kKmMgG]\{0,1\}\)$/heap=\1/p' \
        -e 's/^-XX:MaxRAMPercentage=\([0-9.]*\)$/heap_percent=\1/p' \
        -e 's/^start$/command=start/p' -e 's/^start-dev$/command=start-dev/p'
    echo "memory_bytes=$(limits_of "$pid" | sed -n 's/^memory //p' | sort -n | head -n 1)"
    built=$(
        unzip -p "$home/lib/quarkus/generated-bytecode.jar" META-INF/keycloak-persisted.properties ||
            python3 -c 'import sys, zipfile
print(zipfile.ZipFile(sys.argv[1]).read("META-INF/keycloak-persisted.properties").decode())' \
                "$home/lib/quarkus/generated-bytecode.jar"
    )
    [ -n "$built" ] && echo built=known
    printf '%s\n' "$built" | sed -n 's/^kc\.\([a-z-]*=\)/built.\1/p' | keycloak_known
    tr '\000' '\n' <"/proc/$pid/environ" | awk '/^KC_[A-Z0-9_]*=/ {
        name = tolower(substr($0, 4, index($0, "=") - 4)); gsub(/_/, "-", name)
        print "environment." name substr($0, index($0, "=")) }' | keycloak_known
    tr '\000' '\n' <"/proc/$pid/cmdline" | awk '
        name != "" && !/^-/ { print "argument." name "=" $0; name = ""; next }
        { name = "" }  # a flag has no value
        /^--[a-z-]*=/ { print "argument." substr($0, 3); next }
        /^--[a-z-]*$/ { name = substr($0, 3) }' | keycloak_known
}

# Lines SOURCE.NAME=VALUE whose name is one of the options.
keycloak_known() {
    awk -v known="$keycloak_options" '{ name = $0; sub(/=.*/, "", name); sub(/^[a-z]*\./, "", name) }
        index(known, " " name " ")'
}

keycloak_home() {
    tr '\000' '\n' <"/proc/$1/cmdline" | sed -n 's/^-Dkc\.home\.dir=//p' | head -n 1
}

keycloak_file() {
    pid=$(keycloak_process)
    [ -n "$pid" ] && [ -r "/proc/$pid/environ" ] || return
    path=$(tr '\000' '\n' <"/proc/$pid/environ" | sed -n 's/^KC_CONFIG_FILE=//p')
    path=${path:-$(keycloak_home "$pid")/conf/keycloak.conf}
    echo "@ $path"
    if [ ! -r "/proc/$pid/root$path" ]; then echo "! cannot be read by uid $(id -u)"; return; fi
    awk -v known="$keycloak_options" '/^[ \t]*#/ { next }
        { name = $0; sub(/[ \t]*=.*/, "", name); sub(/^[ \t]*/, "", name) }
        index(known, " " name " ") { sub(/^[ \t]*/, ""); print NR "\t" $0 }' "/proc/$pid/root$path"
}

# How many jobs flush the table of tokens. Only root and Keystone's own user may read its jobs.
cron() {
    flushes=$({ cat "$etc"/cron.d/*keystone*
        if [ -z "${AUDIT_PIDS:-}" ]; then
            crontab -l -u keystone
            [ "$(id -un)" = keystone ] && crontab -l
            cat /var/spool/cron/keystone /var/spool/cron/crontabs/keystone
        fi; } 2>/dev/null | grep -v '^#' | grep -c token_flush)
    if [ "$flushes" = 0 ] && [ -z "${AUDIT_PIDS:-}" ] && [ -d /var/spool/cron ] &&
        [ "$(id -u)" != 0 ] && [ "$(id -un)" != keystone ]; then
        echo "! the cron jobs of user keystone cannot be read by uid $(id -u)"
        return
    fi
    echo "$flushes"
}

# When the job that rotates the Fernet keys runs: its schedule, never its command.
rotation() {
    { if [ -z "${AUDIT_PIDS:-}" ]; then
          crontab -l -u keystone
          crontab -l
          cat /var/spool/cron/keystone /var/spool/cron/crontabs/keystone
      fi
      cat "$etc"/crontab "$etc"/cron.d/*; } 2>/dev/null | awk '
        /^[ \t]*#/ || !/fernet.rotat/ { next }
        $1 ~ /^@/ { print $1; next }
        { print $1, $2, $3, $4, $5 }'
    for period in hourly daily weekly monthly; do
        for file in "$etc"/cron.$period/*fernet?rotat*; do [ -e "$file" ] && echo "@$period"; done
    done
    for file in "$etc"/systemd/system/timers.target.wants/*fernet?rotat*.timer; do
        [ -r "$file" ] && sed -n 's/^OnCalendar=//p' "$file"
    done
}

# rabbitmqctl starts an Erlang machine of its own, which takes seconds: only beside a broker.
rabbitmq() {
    command -v rabbitmqctl >/dev/null || return
    # It asks Erlang's port mapper on port 4369 (hexadecimal 1111) for the broker, and starts one,
    # which stays and listens to everybody, where there is none: beside a broker of a lab.
    grep -qs ':1111 [0-9A-F:]* 0A ' /proc/net/tcp /proc/net/tcp6 || return
    printf '%s\n' "$table" | grep -q '	beam' || return
    limited 10 rabbitmqctl status | grep -i -A 4 'file.descriptors'
    limited 10 rabbitmqctl cluster_status | grep -i -A 6 'partitions'
}

# Where the server is on this host and its own client may log in.
mysql_client() {
    [ -z "${AUDIT_PIDS:-}" ] || return
    client=$(command -v mariadb || command -v mysql) || return
    limited 5 "$client" --connect-timeout=3 -N -B -e 'SHOW GLOBAL VARIABLES; SHOW GLOBAL STATUS; SELECT "data_bytes", COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE engine = "InnoDB"' |
        grep -i -e ^max_ -e ^innodb_ -e ^wsrep_ -e ^query_cache -e ^skip_name -e ^wait_timeout -e ^version -e ^data_bytes -e ^open_files_limit |
        grep -v -i -e pass -e auth -e provider_options
}

# Keystone's own interpreter, else any Python 3.
python() {
    if [ -n "${AUDIT_PYTHON:-}" ]; then echo "$AUDIT_PYTHON"; return; fi
    for program in $(command -v keystone-manage) /var/lib/kolla/venv/bin/keystone-manage \
        /openstack/venvs/keystone-*/bin/keystone-manage /opt/stack/data/venv/bin/keystone-manage; do
        [ -r "$program" ] || continue
        interpreter=$(sed -n '1s/^#! *//p' "$program")
        case $interpreter in /*python*) echo "$interpreter"; return ;; esac
    done
    command -v python3
}

# What only a program can read: the database, memcached, haproxy's counters, the cost of a password.
service() {
    interpreter=$(python)
    [ -n "$interpreter" ] || return
    sockets=$(haproxy_files | sed -n 's/.*stats[ 	]*socket[ 	]*\([^ ]*\).*/\1/p' |
        while read -r path; do inside "$balancer" "$path"; done)
    AUDIT_CONF=$conf AUDIT_KEYSTONES=$keystones AUDIT_SOCKETS=$sockets AUDIT_QUICK=${AUDIT_QUICK:-} limited "${AUDIT_SERVICE_S:-45}" \
        "$interpreter" -W ignore - <<'PYTHON'
import calendar, json, os, re, socket, string, subprocess, sys, time

CONF = [line for line in os.environ.get("AUDIT_CONF", "").split("\n") if line]
DRIVER = ("oslo_messaging_notifications", "driver")
OUT = {}
BEGAN = time.time()


def options():
    """Settings as oslo.config reads them: "=" or ":", quotes, values over several lines; then those
    of the environment; last, $name and ${group.name} become the values of these options."""
    found = {}
    for path in CONF:
        section, key = "DEFAULT", None
        try:
            with open(path, errors="replace") as file:
                lines = file.read().splitlines()
        except (OSError, ValueError):
            continue
        for line in lines:
            if line[:1] in (" ", "\t") and line.strip():
                if key is not None:
                    found[key] += "\n" + line.strip()
                continue
            key = None
            sign = re.search("[=:]", line)
            if line.startswith("["):
                section = line[1:].partition("]")[0].strip()
                section = section if section == "DEFAULT" else section.lower()
            elif sign and line[:1] not in ("#", ";"):
                value = line[sign.end():].strip()
                if value[:1] in ("'", '"') and value[-1:] == value[:1]:
                    value = value[1:-1]
                key = (section, line[:sign.start()].strip())
                # The option may be set many times; only the servers are asked for.
                if key == ("cache", "backend_argument") and not value.startswith("url:"):
                    key = None
                    continue
                # Notifications go to every driver.
                found[key] = found[key] + "\n" + value if key == DRIVER and key in found else value
    for pid in os.environ.get("AUDIT_KEYSTONES", "").split():
        try:
            with open("/proc/%s/environ" % pid, errors="replace") as file:
                variables = file.read().split("\0")
        except (OSError, ValueError):
            continue
        for variable in variables:
            name, _, value = variable.partition("=")
            parts = re.match("OS_([A-Z0-9_]*[A-Z0-9])__([A-Z0-9][A-Z0-9_]*)$", name)
            if parts:
                section = parts.group(1) if parts.group(1) == "DEFAULT" else parts.group(1).lower()
                found[section, parts.group(2).lower()] = value
    return dict((key, substituted(key[0], value, found)) for key, value in found.items())


class Template(string.Template):
    idpattern = r"[_a-z][\._a-z0-9]*"


def substituted(section, value, found):
    names = dict((option, text) for (group, option), text in found.items() if group == "DEFAULT")
    names.update((option, text) for (group, option), text in found.items() if group == section)
    names.update(("%s.%s" % key, text) for key, text in found.items())
    return Template(value.replace("\\$", "$$")).safe_substitute(names)


CHOSEN = options()


def masked(error):
    text = "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0])
    return re.sub(r"://[^\s]*@", "://***@", text)[:200]


def part(name, read):
    try:
        OUT[name] = read()
    except ImportError as error:
        package = getattr(error, "name", None) or str(error)
        OUT[name] = {"error": "%s has no package %s: is it the Python that runs Keystone?" % (sys.executable, package)}
    except Exception as error:
        OUT[name] = {"error": masked(error)}


def versions():
    try:
        from importlib.metadata import version
    except ImportError:
        from pkg_resources import get_distribution
        version = lambda name: get_distribution(name).version
    found = {}
    for name in ("keystone", "oslo.cache", "oslo.db", "dogpile.cache", "bcrypt"):
        try:
            found[name] = version(name)
        except Exception:
            pass
    return found


def clock():
    import ctypes
    timex = (ctypes.c_long * 64)()
    ctypes.CDLL(None).adjtimex(ctypes.byref(timex))
    return {"max_error_us": timex[3]}  # modes and padding, offset, freq, maxerror


def password():
    import bcrypt
    algorithm = CHOSEN.get(("identity", "password_hash_algorithm"), "bcrypt")
    if not algorithm.startswith("bcrypt"):
        return {"error": "password_hash_algorithm is " + algorithm}
    rounds = int(CHOSEN.get(("identity", "password_hash_rounds"), 12))
    # The cost doubles with each round, and a check hashes once: few rounds tell that of many.
    tried = min(rounds, 9)
    salt = bcrypt.gensalt(tried)
    spent = []
    for _ in range(4):
        began = time.process_time()
        bcrypt.hashpw(b"x", salt)
        spent.append(time.process_time() - began)
    return {"verify_ms": min(spent) * 1000 * 2 ** (rounds - tried), "rounds": rounds}


def rows(connection, statement):
    from sqlalchemy import text
    return [list(row) for row in connection.execute(text(statement)).fetchall()]


def tables(connection, found):
    kept = int(CHOSEN.get(("token", "expiration"), 3600)) + int(CHOSEN.get(("revoke", "expiration_buffer"), 1800))
    hour = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 3600))
    old = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - kept))
    count = "SELECT COUNT(*) FROM "
    for name, statement in (
        ("revocation_events", count + "revocation_event"),
        ("revocations_last_hour", count + "revocation_event WHERE revoked_at > '%s'" % hour),
        ("revocations_expired", count + "revocation_event WHERE revoked_at < '%s'" % old),
        ("users", count + "local_user"),
        ("projects", count + "project"),
        ("application_credentials", count + "application_credential"),
        ("token_rows", count + "token"),
        ("directory_users", count + "id_mapping WHERE entity_type = 'user'"),
    ):
        try:
            found[name] = int(rows(connection, statement)[0][0])
        except Exception:
            connection.rollback() if hasattr(connection, "rollback") else None
    try:
        now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        newest = rows(connection, "SELECT MAX(revoked_at) FROM revocation_event WHERE revoked_at <= '%s'" % now)[0][0]
        found["revocations_left_over"] = 0
        if newest is not None:
            # Each revocation deletes what has expired by then; a minute for clocks that differ.
            ends = calendar.timegm(time.strptime(str(newest)[:19], "%Y-%m-%d %H:%M:%S")) - kept - 60
            ends = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ends))
            found["revocations_left_over"] = int(rows(connection, count + "revocation_event WHERE revoked_at < '%s'" % ends)[0][0])
    except Exception:
        found.pop("revocations_left_over", None)
        connection.rollback() if hasattr(connection, "rollback") else None
    try:
        # Only the algorithm and its cost: "$2b$12$", "$bcrypt-sha256$v=2,t=2b,r=12".
        hashes = rows(connection, "SELECT CASE WHEN SUBSTR(password_hash, 1, 17) = '$bcrypt-sha256$v='"
                      " THEN SUBSTR(password_hash, 1, 28) ELSE SUBSTR(password_hash, 1, 7) END, COUNT(*)"
                      " FROM password WHERE password_hash IS NOT NULL GROUP BY 1")
        found["hashes"] = dict((row[0], int(row[1])) for row in hashes)
    except Exception:
        pass


def database():
    import sqlalchemy
    url = CHOSEN.get(("database", "connection"))
    if not url:
        return {"error": "no [database] connection in " + (", ".join(CONF) or "any file")}
    kind = url.split(":")[0].split("+")[0]
    arguments = {} if kind == "sqlite" else {"connect_timeout": 5}
    if kind == "sqlite" and not os.path.exists(url.split("///")[-1].split("?")[0]):
        return {"error": "no such file"}  # connecting would create it
    engine = sqlalchemy.create_engine(url, connect_args=arguments)
    found = {"kind": "mysql" if kind.startswith("m") else kind}
    with engine.connect() as connection:
        if found["kind"] == "mysql":
            rows_of = lambda statement: dict((str(k).lower(), str(v)) for k, v in rows(connection, statement))
            try:
                connection.execute(sqlalchemy.text("SET SESSION TRANSACTION READ ONLY"))
                connection.execute(sqlalchemy.text("SET SESSION max_statement_time = 5"))
            except Exception:
                pass
            keep = re.compile("^(max_|innodb_(buffer_pool_size|log_file_size|flush)|wsrep_|query_cache|skip_name|wait_timeout|version$|thread|open|opened|connections|sync_binlog)")
            drop = re.compile("pass|auth|provider_options|address")
            known = rows_of("SHOW GLOBAL VARIABLES")
            known.update(rows_of("SHOW GLOBAL STATUS"))
            found["variables"] = dict((k, v) for k, v in known.items() if keep.match(k) and not drop.search(k))
            found["data_bytes"] = int(rows(connection, "SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE engine = 'InnoDB'")[0][0])
        elif found["kind"].startswith("postgres"):
            found["kind"] = "postgresql"
            try:
                rows_set = connection.execute(sqlalchemy.text("SET statement_timeout = 5000"))
            except Exception:
                pass
            names = "'max_connections','superuser_reserved_connections','reserved_connections','shared_buffers','fsync','full_page_writes','synchronous_commit','jit','server_version','effective_cache_size','random_page_cost'"
            found["variables"] = dict((name, setting) for name, setting in rows(connection, "SELECT name, setting FROM pg_settings WHERE name IN (%s)" % names))
            found["dead"] = rows(connection, "SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relname IN ('revocation_event', 'local_user')")
            found["data_bytes"] = int(rows(connection, "SELECT pg_database_size(current_database())")[0][0])
            # The server's own processes have no database. The kind of a session (backend_type) is hidden
            # from other ordinary users.
            found["connections"] = int(rows(connection, "SELECT COUNT(*) FROM pg_stat_activity WHERE datid IS NOT NULL")[0][0])
            # Indexes that begin with the user of a password; none where the table does not exist.
            found["password_indexes"] = rows(connection, "SELECT c.oid::text, COUNT(i.indexrelid) FROM pg_class c"
                " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'local_user_id'"
                " LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indisvalid"
                " WHERE c.oid = to_regclass('password') GROUP BY c.oid")
        tables(connection, found)
    return found


def tls_of_cache():
    """The context with which oslo.cache connects; None without TLS."""
    known = lambda option: CHOSEN.get(("cache", option)) or None
    if (known("tls_enabled") or "").lower() not in ("true", "1", "yes", "on"):
        return None
    import ssl
    context = ssl.create_default_context(cafile=known("tls_cafile"))
    if known("tls_certfile"):
        context.load_cert_chain(known("tls_certfile"), known("tls_keyfile"))
    return context


def conversation(name, words, tls):
    host, port = re.match(r"(?:inet6?:)?(\[[^]]*\]|.*?)(?::([0-9]+))?$", name).groups()
    connection = socket.create_connection((host.strip("[]"), int(port or 11211)), 2)
    connection.settimeout(2)
    if tls is not None:
        connection = tls.wrap_socket(connection, server_hostname=host.strip("[]"))
    with connection:
        times = []
        for _ in range(5):
            began = time.time()
            connection.sendall(b"version\r\n")
            connection.recv(1024)
            times.append(time.time() - began)
        answer = {"rtt_ms": min(times) * 1000}
        for word in words:
            connection.sendall(word + b"\r\n")
            text = b""
            while not text.endswith(b"END\r\n") and len(text) < 100000:
                more = connection.recv(65536)
                if not more:
                    break
                text += more
            for line in text.decode("ascii", "replace").splitlines():
                fields = line.split()
                if len(fields) == 3 and fields[0] == "STAT":
                    answer[fields[1]] = fields[2]
    keep = ("rtt_ms", "get_hits", "get_misses", "evictions", "curr_connections", "maxconns", "max_connections",
            "limit_maxbytes", "listen_disabled_num", "rejected_connections", "threads", "num_threads", "uptime")
    return dict((key, answer[key]) for key in keep if key in answer)


def memcached():
    backend = CHOSEN.get(("cache", "backend"), "dogpile.cache.null")
    servers = CHOSEN.get(("cache", "memcache_servers"), "localhost:11211").split(",")
    url = CHOSEN.get(("cache", "backend_argument"), "")
    if url.startswith("url:"):
        servers = url[4:].split(",")
    if "memcache" not in backend and "pylibmc" not in backend:
        return {"servers": []}
    tls, found = tls_of_cache(), []
    for name in [server.strip() for server in servers if server.strip()][:16]:
        try:
            found.append(dict(conversation(name, (b"stats", b"stats settings"), tls), name=name))
        except Exception as error:
            found.append({"name": name, "error": masked(error)})
    return {"servers": found}


def messaging():
    """Whether the brokers of notifications can be reached. Only their names leave this function."""
    section = "oslo_messaging_notifications"
    url = CHOSEN.get((section, "transport_url")) or CHOSEN.get(("DEFAULT", "transport_url"), "")
    sends = any(driver.startswith("messaging") for driver in CHOSEN.get(DRIVER, "").split("\n"))
    if not url or not sends:
        return {"servers": []}
    scheme, _, rest = url.partition("://")
    default = {"rabbit": 5672, "amqp": 5672, "kafka": 9092}.get(scheme.split("+")[0])
    parts = re.split("[/?]", rest)[0].split(",")
    # What does not stand behind the one "@" of its part may belong to a password.
    plain = url.count("@") in (0, len(parts)) and len(set(part.count("@") for part in parts)) == 1
    names = [re.match(r"^([\w.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]+))?$", part.rpartition("@")[2]) for part in parts]
    if default is None or not plain or not all(names):
        return {"error": "transport_url is not understood"}
    found = []
    for name in names[:5]:
        host, port = name.group(1), int(name.group(2) or default)
        server = {"name": "%s:%d" % (host, port)}
        try:
            socket.create_connection((host.strip("[]"), port), 2).close()
        except Exception as error:
            server["error"] = masked(error)
        found.append(server)
    return {"servers": found}


def haproxy():
    found = []
    for path in os.environ.get("AUDIT_SOCKETS", "").split():
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(2)
        with connection:
            connection.connect(path)
            connection.sendall(b"show stat\n")
            text = b""
            while len(text) < 400000:
                more = connection.recv(65536)
                if not more:
                    break
                text += more
        lines = text.decode("ascii", "replace").lstrip("# ").splitlines()
        names = lines[0].split(",")
        for line in lines[1:]:
            row = dict(zip(names, line.split(",")))
            if row.get("svname") == "BACKEND":
                found.append(dict((k, row.get(k, "")) for k in ("pxname", "qcur", "qmax", "econ", "eresp")))
    return found


def started(program, arguments):
    path = os.path.join(os.path.dirname(sys.executable), program)
    if not os.path.exists(path) or not CONF:
        return None
    return subprocess.Popen([path] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, cwd="/")


def ended(process):
    if process is None:
        return {"error": "the program is not beside " + sys.executable}
    try:
        left = max(0.1, BEGAN + 40 - time.time())
        text = process.communicate(timeout=left)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return {"error": "no answer within 40 s"}
    text = re.sub(r"://[^\s]*@", "://***@", text)
    return {"code": process.returncode, "text": text[-8000:]}


def together(found):
    """The answer for all files: that of the first error, or all that was printed."""
    for one in found:
        if "error" in one:
            return one
    if not found:
        return {"error": "there is no configuration file"}
    codes = [one["code"] for one in found if one["code"]]
    return {"code": codes[0] if codes else 0, "text": "\n".join(one["text"] for one in found)}


FILES = [word for path in CONF for word in ("--config-file", path)]
QUIET = ["--log-file", "/dev/null", "--nouse-syslog", "--nouse-journal"]
NAMESPACES = [word for name in ("keystone", "oslo.cache", "oslo.db", "oslo.log", "oslo.messaging", "oslo.middleware",
                                "oslo.policy", "osprofiler") for word in ("--namespace", name)]
SLOW = not os.environ.get("AUDIT_QUICK")
doctor = started("keystone-manage", FILES + QUIET + ["doctor"]) if SLOW else None
# It takes one file.
validators = [started("oslo-config-validator", NAMESPACES + ["--input-file", path]) for path in CONF] if SLOW else []
for name, read in (("versions", versions), ("clock", clock), ("database", database), ("memcached", memcached),
                   ("haproxy", haproxy)):
    part(name, read)
if SLOW:
    part("password", password)
    print(json.dumps(OUT))  # what is known if the rest does not end in time
    sys.stdout.flush()
    part("messaging", messaging)
    part("doctor", lambda: ended(doctor))
    part("validator", lambda: together([ended(one) for one in validators]))
print(json.dumps(OUT))
PYTHON
}

main "$@" </dev/null
