"""The source of both seccomp filters: what a trial may ask of the kernel. Everything else is EPERM.

Left out on purpose: mounts and namespaces, ptrace and its relatives, io_uring (it runs operations that a filter does
not see), bpf, perf, keyrings, modules, file handles. Sockets only of four families: a vsock reaches the hypervisor
whatever the network namespace says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EPERM, ENOSYS = 1, 38


def _names(text: str) -> list[str]:
    return text.split()


ALLOWED = _names("""
    accept accept4 access adjtimex alarm arch_prctl bind brk cachestat capget capset chdir chmod chown
    clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit
    exit_group faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl
    fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex
    futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list getcpu getcwd getdents getdents64
    getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom
    getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr
    getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents
    io_pgetevents io_setup io_submit ioctl ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset
    landlock_restrict_self lchown lgetxattr link linkat listen listxattr listxattrat llistxattr lremovexattr lseek
    lsetxattr lsm_get_self_attr lsm_list_modules lstat madvise membarrier memfd_create memfd_secret mincore mkdir
    mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr mq_notify mq_open mq_timedreceive
    mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep
    newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free
    pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease pselect6 pwrite64 pwritev
    pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr
    removexattrat rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
    rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
    sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
    sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget
    semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list set_tid_address setfsgid setfsuid setgid
    setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt
    setuid setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 splice stat
    statfs statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete
    timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill
    truncate umask uname unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write writev
""")


@dataclass(frozen=True)
class Condition:
    """Allows a call only for some values of one argument: equal to one of them, or having no bit of the mask."""

    name: str
    argument: int
    test: Literal["one_of", "no_bit_of"]
    values: tuple[int, ...]


AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
FAMILIES = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NAMESPACE_FLAGS = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000

CONDITIONAL = (
    Condition("socket", 0, "one_of", FAMILIES),
    Condition("socketpair", 0, "one_of", FAMILIES),
    Condition("clone", 0, "no_bit_of", (NAMESPACE_FLAGS,)),
    # PER_LINUX and its harmless variants, and the question "which is it now"
    Condition("personality", 0, "one_of", (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)),
)

# The flags of clone3 lie in memory, where a filter cannot look; "no such call" makes C libraries use clone instead.
MISSING = ("clone3",)
