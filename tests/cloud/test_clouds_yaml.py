import re
import subprocess
import sys

import pytest
import yaml
from fake_keystone import PASSWORD
from reserved_port import reserve_port

from loadstone.cloud import connect, from_clouds_yaml, from_environment
from loadstone.errors import EnvironmentUnusable, InvalidInput


@pytest.fixture
def clouds(tmp_path, monkeypatch):
    """Write a clouds.yaml, from a value or from text, where the loader looks first."""

    def write(content):
        path = tmp_path / "clouds.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        return path

    return write


def entry(url, **auth):
    known = {
        "auth_url": url,
        "username": "admin",
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    return {"auth": known | auth}


def test_a_cloud_of_the_file_is_reached(clouds, url):
    clouds({"clouds": {"prod": entry(url, password=PASSWORD)}})
    cloud = from_clouds_yaml("prod")
    assert cloud.chosen == "--cloud prod"
    with connect(cloud) as access:
        assert access.identity_url == f"{url}/v3"


def test_os_cloud_names_an_entry(clouds, url):
    clouds({"clouds": {"prod": entry(url, password=PASSWORD)}})
    assert from_environment({"OS_CLOUD": "prod"}).chosen == "--cloud prod"


def test_secrets_may_stand_in_secure_yaml(clouds, url, tmp_path, monkeypatch):
    clouds({"clouds": {"prod": entry(url)}})
    secure = tmp_path / "secure.yaml"
    secure.write_text(yaml.safe_dump({"clouds": {"prod": {"auth": {"password": PASSWORD}}}}))
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", str(secure))
    with connect(from_clouds_yaml("prod")) as access:
        assert access.token()


def test_an_unknown_cloud_names_the_known_ones(clouds, url):
    path = clouds({"clouds": {"prod": entry(url), "test": entry(url)}})
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("staging")
    assert str(problem.value) == f"--cloud staging: no such cloud in {path}; it has prod, test"


def test_the_variables_of_the_environment_are_no_entry_of_the_file(clouds, url, monkeypatch):
    monkeypatch.setenv("OS_USERNAME", "admin")
    path = clouds({"clouds": {"prod": entry(url)}})
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("envvars")
    assert str(problem.value) == f"--cloud envvars: no such cloud in {path}; it has prod"


def test_an_unknown_cloud_of_the_environment_is_named_as_given(clouds, url):
    clouds({"clouds": {"prod": entry(url)}})
    with pytest.raises(InvalidInput, match=r"^OS_CLOUD=staging: no such cloud in "):
        from_environment({"OS_CLOUD": "staging"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("clouds:\n", ":1: clouds must be a mapping, not nothing"),
        ("clouds: [prod]\n", ":1: clouds must be a mapping, not a list"),
        ("clouds:\n  prod:\n", ":2: clouds.prod must be a mapping, not nothing"),
        ("clouds:\n  prod: nothing\n", ":2: clouds.prod must be a mapping, not a text"),
        ("clouds:\n  prod:\n    auth: [a]\n", ":3: clouds.prod.auth must be a mapping, not a list"),
    ],
)
def test_an_entry_that_is_no_mapping_is_named(clouds, content, said):
    path = clouds(content)
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert str(problem.value) == f"{path}{said}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# nothing yet\n", "{path} is empty"),
        ("clouds: {}\n", "no such cloud in {path}; it has no clouds"),
    ],
)
def test_a_file_without_clouds_has_none_that_the_loader_adds(clouds, content, said):
    path = clouds(content)
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert str(problem.value) == f"--cloud prod: {said.format(path=path)}"


def test_an_empty_name_is_no_unknown_cloud(clouds, url):
    clouds({"clouds": {"prod": entry(url)}})
    with pytest.raises(InvalidInput, match=r"^--cloud: is empty; name a cloud"):
        from_clouds_yaml("")


@pytest.mark.parametrize("password", ["{auth_url: [", "!Secret1", "*Secret1", "a: Secret1"])
def test_a_file_that_is_no_yaml_is_named_with_the_line_and_not_quoted(clouds, password):
    path = clouds(f"clouds:\n  prod:\n    auth:\n      password: {password}\n")
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    line = 5 if "[" in password else 4
    assert str(problem.value) == f"{path}:{line}: not YAML or JSON"


def test_no_cloud_of_another_file_stands_in_for_a_broken_one(clouds, url, monkeypatch, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({"clouds": {"prod": entry(url, password=PASSWORD)}}))
    path = clouds("clouds:\n  prod:\n\tauth: {}\n")
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [str(other)])
    with pytest.raises(InvalidInput, match=rf"^{path}:3: not YAML or JSON$"):
        from_clouds_yaml("prod")


def test_a_file_that_is_yaml_and_not_json_as_its_name_says_is_refused(url, monkeypatch, tmp_path):
    broken, other = tmp_path / "clouds.json", tmp_path / "other.yaml"
    broken.write_text('{"clouds": {\n},}')
    other.write_text(yaml.safe_dump({"clouds": {"prod": entry(url, password=PASSWORD)}}))
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [str(broken), str(other)])
    with pytest.raises(InvalidInput, match=rf"^{broken}:2: not JSON$"):
        from_clouds_yaml("prod")


def test_a_broken_secure_yaml_is_named(clouds, url, monkeypatch, tmp_path):
    clouds({"clouds": {"prod": entry(url)}})
    secure = tmp_path / "secure.yaml"
    secure.write_text("clouds: [\n")
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", str(secure))
    with pytest.raises(InvalidInput, match=rf"^{secure}:2: not YAML or JSON$"):
        from_clouds_yaml("prod")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("clouds:\n- prod\n", "1: clouds must be a mapping, not a list"),
        ("clouds:\n  prod: s3cret\n", "2: clouds.prod must be a mapping, not a text"),
        ("clouds:\n  prod:\n    auth:\n", "3: clouds.prod.auth must be a mapping, not nothing"),
    ],
)
def test_a_secure_yaml_of_another_form_is_named(clouds, url, monkeypatch, tmp_path, content, said):
    clouds({"clouds": {"prod": entry(url)}})
    secure = tmp_path / "secure.yaml"
    secure.write_text(content)
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", str(secure))
    with pytest.raises(InvalidInput, match=f"^{re.escape(f'{secure}:{said}')}$"):
        from_clouds_yaml("prod")


@pytest.mark.parametrize("wrong", [None, ["http://127.0.0.1:5000/v3"], 5])
def test_an_auth_url_that_is_no_text_is_named(clouds, url, wrong):
    auth = entry(url)["auth"] | {"auth_url": wrong}
    clouds({"clouds": {"prod": {"auth": auth}}})
    with pytest.raises(InvalidInput, match=r"clouds\.prod\.auth\.auth_url must be a text, not"):
        from_clouds_yaml("prod")


@pytest.mark.parametrize(
    "content",
    [
        "just words\n",
        "clouds:\n",
        "clouds: [a, b]\n",
        "clouds:\n  prod: nothing\n",
        "clouds:\n  prod:\n    auth: nothing\n",
        "clouds:\n  prod:\n    auth: {auth_url: 5}\n",
        "clouds:\n  prod: {regions: [{values: {}}], auth: {}}\n",
    ],
)
def test_a_file_of_the_wrong_shape_gives_one_line(clouds, content):
    clouds(content)
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert "\n" not in str(problem.value)


def test_no_file_at_all_says_where_it_was_looked_for(monkeypatch):
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [])
    with pytest.raises(InvalidInput, match=r"no clouds\.yaml found; .*~/\.config/openstack"):
        from_clouds_yaml("prod")


def test_a_named_file_that_is_missing_is_not_replaced_by_the_next_place(
    clouds, url, monkeypatch, tmp_path
):
    usual = clouds({"clouds": {"prod": entry(url, password=PASSWORD)}})
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [str(usual)])
    missing = tmp_path / "cluods.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(missing))
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    expected = f"OS_CLIENT_CONFIG_FILE: {missing} is not a file that can be read"
    assert str(problem.value) == expected


def test_a_missing_field_is_named_with_its_place(clouds, url):
    path = clouds({"clouds": {"prod": entry(url)}})
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert str(problem.value) == f"{path}: clouds.prod.auth.password is missing"


def test_a_file_of_tls_that_cannot_be_read_is_named_with_its_place(clouds, url, tmp_path):
    known = entry(url, password=PASSWORD)
    for missing in (tmp_path / "ca.pem", tmp_path):
        path = clouds({"clouds": {"prod": known | {"cacert": str(missing)}}})
        with pytest.raises(InvalidInput) as problem:
            from_clouds_yaml("prod")
        said = f"{path}: clouds.prod.cacert: {missing} is not a file that can be read"
        assert str(problem.value) == said


def test_places_that_cannot_be_looked_at_are_passed_over(clouds, url, monkeypatch):
    clouds({"clouds": {"prod": entry(url, password=PASSWORD)}})
    # As a folder that may not be entered: nobody knows whether the file is there.
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", "/" + 300 * "x")
    assert from_clouds_yaml("prod").chosen == "--cloud prod"


def test_a_file_without_its_section_is_said(clouds):
    path = clouds({"cloud": {"prod": {}}})
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert str(problem.value) == f"--cloud prod: {path} has no `clouds:` section; it has cloud:"


def test_aliases_that_expand_without_limit_are_refused(tmp_path, monkeypatch):
    lines = ["a0: &a0 {x: 1, y: 1, z: 1}"]
    merged = ", ".join
    lines += [f"a{n}: &a{n} {{<<: [{merged([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    (tmp_path / "clouds.yaml").write_text("\n".join([*lines, "clouds: {mine: *a11}"]))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    with pytest.raises(InvalidInput, match=r"clouds\.yaml: its aliases expand"):
        from_clouds_yaml("mine")


def test_openstacksdk_is_whole_for_those_who_import_it_after_a_cloud_was_read(url, tmp_path):
    """The loader is imported without the clients of all services; a plugin may need them."""
    program = """
import sys
from loadstone.cloud.read import from_environment
from_environment({"OS_AUTH_URL": sys.argv[1], "OS_USERNAME": "a", "OS_PASSWORD": "b",
                  "OS_USER_DOMAIN_ID": "default"})
assert "openstack.connection" not in sys.modules
from openstack.config import OpenStackConfig
import openstack
assert openstack.config.OpenStackConfig is OpenStackConfig
assert openstack.connect and openstack.enable_logging and not hasattr(openstack, "nothing")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ended.returncode, ended.stderr


def test_variables_choose_region_and_interface_of_a_named_cloud(clouds, url, monkeypatch):
    clouds({"clouds": {"prod": entry(url, password=PASSWORD) | {"regions": ["R1", "R2"]}}})
    assert (from_clouds_yaml("prod").region, from_clouds_yaml("prod").interface) == ("R1", "public")
    monkeypatch.setenv("OS_REGION_NAME", "R2")
    monkeypatch.setenv("OS_INTERFACE", "internal")
    cloud = from_clouds_yaml("prod")
    assert (cloud.region, cloud.interface) == ("R2", "internal")
    monkeypatch.setenv("OS_REGION_NAME", "R3")
    with pytest.raises(InvalidInput, match=r"OS_REGION_NAME=R3, .*Valid choices are R1,R2"):
        from_clouds_yaml("prod")


def test_the_region_of_keystone_is_not_that_of_other_services(clouds, url):
    regions = {"region_name": "R2", "identity_region_name": "R1"}
    clouds({"clouds": {"prod": entry(url, password=PASSWORD) | regions}})
    assert from_clouds_yaml("prod").region == "R2"


def test_a_profile_that_does_not_answer_is_named(clouds, url, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    away = f"http://127.0.0.1:{reserve_port()}"
    clouds({"clouds": {"prod": entry(url, password=PASSWORD) | {"profile": away}}})
    with pytest.raises(EnvironmentUnusable, match=rf"cannot be fetched \({away}/\.well-known/"):
        from_clouds_yaml("prod")


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("2020-01-01", "a date or a mapping"),
        ("yes", "true or false"),
        ("[Secret1]", "a list"),
        ("{Secret1: 2}", "a date or a mapping"),
    ],
)
def test_a_password_that_yaml_does_not_read_as_text_is_named(clouds, url, written, kind):
    known = yaml.safe_dump({"clouds": {"prod": entry(url)}})
    path = clouds(known.replace("project_name:", f"password: {written}\n      project_name:"))
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    said = f"clouds.prod.auth.password must be a text, not {kind}: put it in quotes"
    assert str(problem.value) == f"{path}: {said}"


def test_clouds_may_have_numbers_for_names(clouds, url):
    path = clouds({"clouds": {"prod": entry(url, password=PASSWORD), 2026: entry(url)}})
    assert from_clouds_yaml("prod").chosen == "--cloud prod"
    with pytest.raises(InvalidInput, match=rf"no such cloud in {path}; it has 2026, prod$"):
        from_clouds_yaml("staging")
    with pytest.raises(InvalidInput, match=rf"--cloud 2026: {path}:\d+: .*: put it in quotes$"):
        from_clouds_yaml("2026")


def test_a_setting_that_the_authentication_does_not_know_is_named_with_its_place(clouds, url):
    path = clouds({"clouds": {"prod": entry(url, password=PASSWORD, projct_id="p")}})
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert str(problem.value) == (
        f"{path}: clouds.prod.auth.projct_id is not a setting of this kind of authentication; "
        "correct its name, or remove it"
    )


@pytest.mark.parametrize("text", ["false", "True"])
def test_a_text_that_should_be_true_or_false_is_no_missing_ca_file(clouds, url, text):
    path = clouds({"clouds": {"prod": entry(url, password=PASSWORD) | {"verify": text}}})
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert str(problem.value).startswith(f"{path}: clouds.prod.verify is the text {text!r}: ")
    assert "cacert" not in str(problem.value)


def test_a_setting_with_braces_is_named_with_its_place(clouds, url):
    path = clouds({"clouds": {"prod": entry(url, password="{a}") | {"region_name": "a{b}"}}})
    with pytest.raises(InvalidInput) as problem:
        from_clouds_yaml("prod")
    assert str(problem.value).startswith(f"{path}: clouds.prod.region_name has braces, ")
