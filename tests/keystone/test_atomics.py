from loadstone.keystone.scenarios.atomics import Atomic, atomics

USER = "keystone_v3.create_user"


def test_actions_nest_as_their_paths_say():
    assert atomics(["a", "b/c", "b/c/d", "b/c/e", "b/c#2", "b/c#2/d", "f"]) == (
        Atomic("a", 0, 0),
        Atomic(
            "b",
            1,
            5,
            (
                Atomic("c", 1, 3, (Atomic("d", 2, 2), Atomic("e", 3, 3))),
                Atomic("c", 4, 5, (Atomic("d", 5, 5),)),
            ),
        ),
        Atomic("f", 6, 6),
    )


def test_requests_side_by_side_with_one_path_are_one_action():
    assert atomics(["keystoneauth.get_token", USER, USER, f"{USER}#2"]) == (
        Atomic("keystoneauth.get_token", 0, 0),
        Atomic(USER, 1, 2),
        Atomic(USER, 3, 3),
    )
