from loadstone.keystone.scenarios.atomics import Atomic, atomics

USER = "keystone_v3.create_user"


def test_nested_actions_are_part_of_the_outer_one():
    assert atomics(["a", "b/c", "b/c/d", "b/c/e", "b/c#2", "b/c#2/d", "f"]) == (
        Atomic("a", 0, 0),
        Atomic("b", 1, 5),
        Atomic("f", 6, 6),
    )


def test_requests_side_by_side_with_one_path_are_one_action():
    assert atomics(["keystoneauth.get_token", USER, USER, f"{USER}#2"]) == (
        Atomic("keystoneauth.get_token", 0, 0),
        Atomic(USER, 1, 2),
        Atomic(USER, 3, 3),
    )
