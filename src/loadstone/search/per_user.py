"""Tells a limit for each user from one for all, by a trial with half of the users."""

from dataclasses import dataclass

from loadstone.analysis.model import Trial

PURPOSE = "half the users"  # of the trial: its rates are not those of all users
SEEN = 12.0  # refusals that are expected if the limit is for each user
LEAST_S = 2.0
ONE_USER = (
    "the limit may be for each user, address or connection, and one user sends all of these "
    "requests: to tell, measure what each user sends (--scenario issue --users 20)"
)
NOT_KNOWN = (
    "whether the limit is for each user or for all was not seen: another number of users "
    "(--users), or a longer --budget, tells"
)


def is_of_fewer_users(trial: Trial) -> bool:
    """Whether a trial was sent by half of the users, to tell what a limit is for."""
    return trial.purpose.startswith(PURPOSE)


@dataclass(frozen=True, slots=True)
class FewerUsers:
    """A trial with half of the users, at a rate that only a limit for each user refuses."""

    limit_rps: float  # of all users
    users: int
    burst: float  # requests that all users may send at once

    @property
    def few(self) -> int:
        """Number of users that send it."""
        return self.users // 2

    @property
    def share(self) -> float:
        """Share of the users that send it."""
        return self.few / self.users

    @property
    def rate_rps(self) -> float:
        """A rate that is refused only if each user has a limit, once the buckets are empty."""
        return self.limit_rps * (1 + self.share) / 2

    @property
    def seconds(self) -> float:
        """Seconds until the buckets are empty and enough requests were refused."""
        excess_rps = self.rate_rps - self.limit_rps * self.share
        return max(LEAST_S, (self.burst * self.share + SEEN) / excess_rps)

    def told(self, requests: int, refused: int, *, is_refused: bool) -> str:
        """Say what the limit is for."""
        half = f"with {self.few} of the {self.users} users"
        if is_refused:
            return (
                f"the limit is {self.limit_rps / self.users:.3g}/s for each user: {half} {refused} "
                f"of {requests:,} were refused at {self.rate_rps:.4g}/s; N holds for {self.users} "
                f"users who send alike"
            )
        if refused:
            return NOT_KNOWN
        return (
            f"the limit is not for each user: {half} none of {requests:,} was refused at "
            f"{self.rate_rps:.4g}/s; it is for all clients, or for each address or connection"
        )
