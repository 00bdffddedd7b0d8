/* SPDX-License-Identifier: GPL-2.0 */
/* The header that user space sees, as the module sees it. */
#ifndef POWERCTL_UAPI_WRAPPER_H
#define POWERCTL_UAPI_WRAPPER_H
#include "uapi/powerctl.h"
#endif
