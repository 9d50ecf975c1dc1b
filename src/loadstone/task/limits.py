"""What reading a task file may cost. The largest that we know renders to 60 kB in 20 ms."""

CPU_S = 3
MEMORY_BYTES = 512 * 2**20
MAX_BYTES = 2_000_000  # of a file, and of what a template gives
MAX_VALUES = 200_000  # Rally's largest sample holds 1,400; a task of 20,000 lines some 60,000
MAX_DEPTH = 64
