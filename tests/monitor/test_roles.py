"""What processes of other machines are, by command lines as `ps` prints them there."""

import pytest

from loadstone.monitor.roles import Role, role_of, role_of_command


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("/usr/bin/uwsgi --ini /etc/keystone/uwsgi.ini", Role.KEYSTONE),
        ("keystoneuWSGI worker 3", Role.KEYSTONE),
        ("(wsgi:keystone-pu -k start", Role.KEYSTONE),
        ("gunicorn: worker [keystone]", Role.KEYSTONE),
        ("/usr/bin/python3 /usr/bin/keystone-wsgi-public --port 5000", Role.KEYSTONE),
        ("/usr/lib/jvm/java-21/bin/java -Xmx2g -Dkc.home.dir=/opt/keycloak/bin/..", Role.KEYSTONE),
        # Other services of a cloud run in the same servers.
        ("/usr/bin/uwsgi --ini /etc/placement/uwsgi.ini", Role.OTHER),
        ("nova-apiuWSGI worker 1", Role.OTHER),
        ("(wsgi:placement-a -k start", Role.OTHER),
        ("/usr/bin/python3 /usr/bin/gunicorn barbican.wsgi", Role.OTHER),
        ("/usr/bin/java -Xmx1g -jar zookeeper.jar", Role.OTHER),
        ("tail -f /var/log/keystone/keystone.log", Role.OTHER),
        ("postgres: keystone keystone 10.0.0.1(5000) idle", Role.DATABASE),
        ("/usr/sbin/mariadbd --datadir=/var/lib/mysql", Role.DATABASE),
        ("/usr/sbin/apache2 -k start", Role.WEB),
        # Clients of a server are no part of it.
        ("/usr/bin/prometheus-mysqld-exporter --web.listen-address=:9104", Role.OTHER),
        ("/bin/haproxy_exporter --haproxy.scrape-uri=unix:/run/haproxy.sock", Role.OTHER),
        ("mysqldump --all-databases --single-transaction", Role.OTHER),
        ("", Role.OTHER),
    ],
)
def test_the_role_of_a_command(command, role):
    assert role_of_command(command) is role


@pytest.mark.parametrize("command", ["(wsgi:app)", "apache", "apache          "])
def test_a_daemon_of_mod_wsgi_is_keystone_also_if_spaces_follow_its_title(command):
    """The title overwrites the program's path, and what is left of it."""
    assert role_of("apache", command) is Role.KEYSTONE
    assert role_of("apache", "/usr/sbin/apache2") is Role.WEB
