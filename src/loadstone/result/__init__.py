"""What a run found, as frozen values, and the protocol by which a trial is observed."""
