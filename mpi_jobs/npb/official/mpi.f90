! For programs that say "use mpi".
module mpi
  include 'mpif.h'
end module mpi
