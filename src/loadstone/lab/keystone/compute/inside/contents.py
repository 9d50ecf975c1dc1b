"""Creates the missing tiny public images and flavors.

Reads {"auth_url", "password" of the administrator, "images", "flavors"} as JSON from standard
input.
"""
# mypy: ignore-errors
# openstacksdk comes from the lab's environment.

import json
import sys

import openstack

# With a disk: only the administrator may boot a flavor without one from an image.
SIZE = {"ram": 1, "vcpus": 1, "disk": 1}


def main() -> None:
    """Create what standard input lists."""
    order = json.load(sys.stdin)
    cloud = openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth_type="password",
        auth={
            "auth_url": order["auth_url"],
            "username": "admin",
            "password": order["password"],
            "project_name": "admin",
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        region_name="RegionOne",
    )
    for name in order["flavors"]:
        if cloud.compute.find_flavor(name) is None:
            cloud.compute.create_flavor(name=name, **SIZE)
    for name in order["images"]:
        if cloud.image.find_image(name) is None:
            cloud.image.create_image(
                name=name,
                disk_format="raw",
                container_format="bare",
                visibility="public",
                data=b"\0" * 512,
            )


if __name__ == "__main__":
    main()
