"""Services of known capacity on a virtual clock: the proof of every search method."""
