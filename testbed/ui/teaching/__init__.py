"""Exercises for teaching: task sheets, what a student has to hand in, and checks that say what holds and what does not.

An exercise is a folder in `exercises/`. What its tasks demand is data (`exercise.yaml`); how a demand is judged is a
function in `demands/`. A judge looks at the student's files only, never at the solution.
"""
