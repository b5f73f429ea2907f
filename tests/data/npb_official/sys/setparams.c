/* Writes npbparams.h for a class, after a look at make.def. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    FILE *options = fopen("../config/make.def", "r"), *file;

    if (argc != 3 || !options || strlen(argv[2]) != 1 || !strchr("SWAB", *argv[2])) {
        fprintf(stderr, "setparams: this class or benchmark is not known\n");
        return 1;
    }
    fclose(options);
    file = fopen("npbparams.h", "w");
    if (strcmp(argv[1], "is") == 0)
        fprintf(file, "#define CLASS '%c'\n", *argv[2]);
    else
        fprintf(file, "      character class\n      parameter (class='%c')\n", *argv[2]);
    return fclose(file);
}
