import pytest

from loadstone.errors import InvalidInput
from loadstone.keystone.rust import UNSERVED, require_served
from loadstone.keystone.scenarios import SCENARIOS, named
from loadstone.plan.script import WeightedScript


def test_a_mix_creates_what_its_scenarios_create():
    mix = named("mix:user-life=1,app-credential=1,domain-life=1,issue=7")
    assert mix.makes == SCENARIOS["domain-life"].makes
    assert mix.values == SCENARIOS["user-life"].values
    assert mix.goes_with_users == "application credentials and users and domains"


def test_a_mix_is_a_scenario_of_the_others_steps() -> None:
    mix = named("mix:issue=1,validate=9")
    issue, validate = SCENARIOS["issue"], SCENARIOS["validate"]
    assert mix.steps == issue.steps + validate.steps
    assert mix.mix == (WeightedScript(1, 1.0), WeightedScript(1, 9.0))
    assert mix.columns == issue.columns | validate.columns
    assert mix.token_columns == ("token",)
    assert "0.1 POST /v3/auth/tokens" in mix.request


def test_compute_hosts_ask_by_the_defaults_of_nova_and_keystonemiddleware() -> None:
    mix = named("mix:cloud-100")
    assert mix.title == "what 100 compute hosts in use ask"
    assert named("mix:cloud-1").title == "what 1 compute host in use asks"
    assert mix.steps == SCENARIOS["issue"].steps + SCENARIOS["validate"].steps
    # 3 logins in 58 minutes and 3 validations in 5 minutes, from each host in use.
    logins, validations = (script.weight for script in mix.mix)
    assert 3480 * logins == pytest.approx(300)
    assert 300 * validations == pytest.approx(300)


def test_a_name_is_the_scenario_itself() -> None:
    assert named("issue") is SCENARIOS["issue"]


@pytest.mark.parametrize(
    ("name", "lacking"),
    [("catalog", "catalog"), ("mix:issue=1,group-life=1", "group-life")],
)
def test_what_keystone_in_rust_lacks_is_refused_by_name(name, lacking):
    with pytest.raises(InvalidInput, match=f"Keystone in Rust does not serve {lacking}; choose"):
        require_served(named(name), UNSERVED, "")
    require_served(named(name), (), "")
    require_served(named("mix:issue=1,validate=9"), UNSERVED, "")


@pytest.mark.parametrize("special", ["login-totp", "issue-groups", "validate-groups"])
def test_users_who_are_different_do_nothing_else(special):
    with pytest.raises(InvalidInput, match=f"{special} cannot be mixed"):
        named(f"mix:{special}=1,validate=9")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "isue",
            "no scenario 'isue'; did you mean 'issue'\\? loadstone capacity --help",
        ),
        ("mix:isue=1,validate=9", "no scenario 'isue'"),
        ("mix:qqq=1,validate=9", "validate-.*, wrong-password; a mix such as mix:issue=1,validate"),
        ("mix:issue=1", "is a mix of one scenario; give each a weight"),
        ("mix:issue", "must be NAME=WEIGHT with a weight above 0, not 'issue'"),
        ("mix:issue=0", "weight above 0"),
        ("mix:issue=nan", "weight above 0"),
        ("mix:issue=1,issue=2", "names a scenario twice"),
        ("mix:", "must be NAME=WEIGHT"),
        ("mix:cloud-", "must be mix:cloud-HOSTS with 1 to 1,000,000 compute hosts"),
        ("mix:cloud-0", "such as mix:cloud-100"),
        ("mix:cloud-many", "such as mix:cloud-100"),
        ("mix:cloud-1000001", "such as mix:cloud-100"),
    ],
)
def test_what_is_no_mix_is_refused(name: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        named(name)
