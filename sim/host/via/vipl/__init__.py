"""VIPL: the calls of the VI Provider Library under their own names, as coroutines.

Arguments are those of the C calls, without the pointers through which they return; `errors` says how a call ends. Times
are in milliseconds (`timeout_ms`), of simulated time, and None is VIP_INFINITE.
"""

from .completions import VipCQDone, VipCQNotify, VipCQWait, VipCreateCQ, VipDestroyCQ, VipResizeCQ
from .connections import (
    VipConnectAccept,
    VipConnectPeerDone,
    VipConnectPeerRequest,
    VipConnectPeerWait,
    VipConnectReject,
    VipConnectRequest,
    VipConnectWait,
    VipDisconnect,
)
from .memory import (
    VipCreatePtag,
    VipDeregisterMem,
    VipDestroyPtag,
    VipQueryMem,
    VipRegisterMem,
    VipSetMemAttributes,
)
from .nics import (
    VIP_SMI_AUTODISCOVERY,
    VipCloseNic,
    VipErrorCallback,
    VipNSGetHostByAddr,
    VipNSGetHostByName,
    VipNSInit,
    VipNSShutdown,
    VipOpenNic,
    VipQueryNic,
    VipQuerySystemManagementInfo,
)
from .transfers import (
    VipPostRecv,
    VipPostSend,
    VipRecvDone,
    VipRecvNotify,
    VipRecvWait,
    VipSendDone,
    VipSendNotify,
    VipSendWait,
)
from .vis import VipCreateVi, VipDestroyVi, VipQueryVi, VipSetViAttributes

__all__ = [
    "VIP_SMI_AUTODISCOVERY",
    "VipCQDone",
    "VipCQNotify",
    "VipCQWait",
    "VipCloseNic",
    "VipConnectAccept",
    "VipConnectPeerDone",
    "VipConnectPeerRequest",
    "VipConnectPeerWait",
    "VipConnectReject",
    "VipConnectRequest",
    "VipConnectWait",
    "VipCreateCQ",
    "VipCreatePtag",
    "VipCreateVi",
    "VipDeregisterMem",
    "VipDestroyCQ",
    "VipDestroyPtag",
    "VipDestroyVi",
    "VipDisconnect",
    "VipErrorCallback",
    "VipNSGetHostByAddr",
    "VipNSGetHostByName",
    "VipNSInit",
    "VipNSShutdown",
    "VipOpenNic",
    "VipPostRecv",
    "VipPostSend",
    "VipQueryMem",
    "VipQueryNic",
    "VipQuerySystemManagementInfo",
    "VipQueryVi",
    "VipRecvDone",
    "VipRecvNotify",
    "VipRecvWait",
    "VipRegisterMem",
    "VipResizeCQ",
    "VipSendDone",
    "VipSendNotify",
    "VipSendWait",
    "VipSetMemAttributes",
    "VipSetViAttributes",
]
