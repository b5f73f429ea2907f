      module mpinpb
      include 'mpif.h'
      integer me, np, half, statuses(MPI_STATUS_SIZE, 2), requests(2)
      end module mpinpb

      module through_module
      use mpi
      end module through_module
