"""Resource limits for reading a task file. The largest known file renders to 60 kB in 20 ms."""

CPU_S = 3
MEMORY_BYTES = 512 * 2**20
MAX_BYTES = 2_000_000  # of a file and of a rendered template
MAX_VALUES = 200_000  # Rally's largest sample holds 1,400; a task of 20,000 lines some 60,000
MAX_DEPTH = 64
