/* Between the files of this folder; no kernel includes it. */
#ifndef NPB_INTERNAL_H
#define NPB_INTERNAL_H

#include "npb.h"

extern const char *npb_kernel;       /* its name: IS */
extern char npb_class_letter;        /* S, W, A or B */
extern double npb_seconds;           /* of the timed part, this rank's */
extern double npb_seconds_in_mpi;    /* of those, in communication */
extern uint64_t npb_fabric_bytes;    /* payload that this rank has sent to other hosts, in the whole run */

#endif
