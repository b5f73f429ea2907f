/*
 * Prints mpif.h: the constants of this MPI library, as Fortran has them, for fixed and for free source form.
 * The addresses that stand for "ignore" and "in place" are those of variables that bindings.c knows.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

static void number(const char *name, int value)
{
    printf("      integer %s\n      parameter (%s=%d)\n", name, name, value);
}

#define NUMBER(name) number(#name, name)
#define TYPE(name, in_c) number(#name, (int) MPI_Type_c2f(in_c))
#define OPERATION(name) number(#name, (int) MPI_Op_c2f(name))
#define STATUS(name) number(#name, (int) (offsetof(MPI_Status, name) / sizeof(MPI_Fint)) + 1)

int main(void)
{
    number("MPI_COMM_WORLD", (int) MPI_Comm_c2f(MPI_COMM_WORLD));
    number("MPI_COMM_NULL", (int) MPI_Comm_c2f(MPI_COMM_NULL));
    number("MPI_REQUEST_NULL", (int) MPI_Request_c2f(MPI_REQUEST_NULL));
    TYPE(MPI_INTEGER, MPI_INT);
    TYPE(MPI_INTEGER8, MPI_INT64_T);
    TYPE(MPI_REAL, MPI_FLOAT);
    TYPE(MPI_REAL8, MPI_DOUBLE);
    TYPE(MPI_DOUBLE_PRECISION, MPI_DOUBLE);
    TYPE(MPI_COMPLEX, MPI_C_FLOAT_COMPLEX);
    TYPE(MPI_DOUBLE_COMPLEX, MPI_C_DOUBLE_COMPLEX);
    TYPE(MPI_LOGICAL, MPI_INT);
    TYPE(MPI_CHARACTER, MPI_CHAR);
    TYPE(MPI_BYTE, MPI_BYTE);
    OPERATION(MPI_SUM);
    OPERATION(MPI_PROD);
    OPERATION(MPI_MAX);
    OPERATION(MPI_MIN);
    OPERATION(MPI_LAND);
    OPERATION(MPI_LOR);
    NUMBER(MPI_SUCCESS);
    NUMBER(MPI_ERR_OTHER);
    NUMBER(MPI_UNDEFINED);
    NUMBER(MPI_ANY_SOURCE);
    NUMBER(MPI_ANY_TAG);
    NUMBER(MPI_PROC_NULL);
    NUMBER(MPI_THREAD_SINGLE);
    NUMBER(MPI_THREAD_FUNNELED);
    number("MPI_STATUS_SIZE", (int) (sizeof(MPI_Status) / sizeof(MPI_Fint)));
    STATUS(MPI_SOURCE);
    STATUS(MPI_TAG);
    STATUS(MPI_ERROR);
    printf("      integer MPI_STATUS_IGNORE(MPI_STATUS_SIZE)\n"
           "      integer MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)\n"
           "      integer MPI_IN_PLACE\n"
           "      common /mpi_ignored_status/ MPI_STATUS_IGNORE\n"
           "      common /mpi_ignored_statuses/ MPI_STATUSES_IGNORE\n"
           "      common /mpi_placed/ MPI_IN_PLACE\n"
           "      double precision MPI_WTIME, MPI_WTICK\n"
           "      external MPI_WTIME, MPI_WTICK\n");
    return 0;
}
