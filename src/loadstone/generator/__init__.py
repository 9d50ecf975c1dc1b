"""The load generator: requests that the engine sends, or Python functions that workers call."""
