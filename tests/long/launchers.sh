#!/bin/bash
# SPDX-License-Identifier: MIT
#
# launchers.sh: --shard under real launchers on this machine: Slurm (srun, an array and a dependent
# job), Open MPI, MPICH and GNU parallel with a failing first try. A launcher that is missing is
# left out.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# check WHAT STATUS: one copy by a launcher has ended.
check() {
	local left
	tried=$((tried + 1))
	[ "$2" = 0 ] || fail_status "$2" "$1: $(head -n 3 "$work/err")"
	cmp -s "$work/src" "$work/dst" || fail wrong "$1: DST is not the source"
	left=$(cd "$work" && find dst.* | sort | xargs)
	[ "$left" = 'dst.fcopy-part dst.fcopy-part/journal dst.fcopy-part/lock' ] || fail other "$1 left $left"
	rm -rf "$work"/dst*
}

# launch WHAT COMMAND…
launch() {
	timed "${@:2}" >"$work/out" 2>"$work/err"
	check "$1" $?
}

# wait_for_job ID: until it has left the queue.
wait_for_job() {
	local i
	for ((i = 0; i < 300; i++)); do
		[ -n "$(squeue --noheader --job "$1" 2>/dev/null)" ] || return 0
		sleep 0.2
	done
	return 1
}

# Runs below tests/tools/slurm.sh.
slurm() {
	local id last
	launch 'srun' srun -n 4 -O "$FCOPY" --shard=auto "$work/src" "$work/dst"
	timed sbatch --quiet --wait -n 4 -O --output="$work/job" --wrap "'$FCOPY' '$work/src' '$work/dst'" ||
		fail_status $? "sbatch: $(head -n 3 "$work/job")"
	cmp -s "$work/src" "$work/dst" || fail wrong 'sbatch without srun and without --shard: not whole'
	tried=$((tried + 1))
	rm "$work/dst"
	id=$(sbatch --parsable --array=3-6 --output="$work/job" \
		--wrap "'$FCOPY' --shard=auto '$work/src' '$work/dst'")
	last=$(sbatch --parsable --dependency=afterany:"$id" --output="$work/job" \
		--wrap "'$FCOPY' --shard=finish/4 '$work/src' '$work/dst'")
	wait_for_job "$last" || fail hung "the dependent job $last"
	cp "$work/job" "$work/err"
	check 'an array, then a dependent job' 0
	launch 'srun of a step with PMI-2' srun --mpi=pmi2 -n 3 -O "$FCOPY" --shard=auto "$work/src" "$work/dst"
}

parallel_with_retries() {
	# The first try of each share fails before it copies anything.
	printf '%s\n' '#!/bin/sh' "mkdir '$work/try'\$PARALLEL_SEQ 2>/dev/null && exit 1" \
		"exec '$FCOPY' --shard=auto/4 '$work/src' '$work/dst'" >"$work/share"
	chmod +x "$work/share"
	launch 'parallel' parallel --will-cite --joblog "$work/log" --retries 3 "$work/share" '#' ::: 1 2 3 4
	[ "$(find "$work" -name 'try?' | wc -l)" = 4 ] || fail other 'parallel: no first try failed'
}

if [ "${1-}" = --slurm ]; then
	work=$2
	slurm
	finish
fi
make_work
random_file "$work/src" 33000000
unset "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" PARALLEL_SEQ JOB_COMPLETION_INDEX
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if type mpirun.openmpi >/dev/null 2>&1; then
	launch 'Open MPI' mpirun.openmpi -q --oversubscribe -np 4 "$FCOPY" --shard=auto "$work/src" "$work/dst"
else
	left_out 'Open MPI' 'no mpirun.openmpi'
fi
if type mpiexec.hydra >/dev/null 2>&1; then
	launch 'MPICH' mpiexec.hydra -n 4 "$FCOPY" --shard=auto "$work/src" "$work/dst"
else
	left_out 'MPICH' 'no mpiexec.hydra'
fi
if type parallel >/dev/null 2>&1; then
	parallel_with_retries
else
	left_out 'GNU parallel' 'no parallel'
fi
for i in 0 1 2; do
	JOB_COMPLETION_INDEX=$i "$FCOPY" --shard=auto/3 "$work/src" "$work/dst" 2>"$work/err" ||
		fail_status $? "Kubernetes' variable: $(cat "$work/err")"
done
check "Kubernetes' variable" 0
"$root/tests/tools/slurm.sh" "$work/slurm" "$0" --slurm "$work" >"$work/slurm.out" 2>&1
status=$?
grep 'FAILED' "$work/slurm.out"
if [ $status = 77 ]; then
	left_out Slurm "$(tail -n 1 "$work/slurm.out")"
elif ! [[ $(tail -n 1 "$work/slurm.out") =~ :\ ([0-9]+)\ tried ]]; then
	fail other "Slurm: $(tail -n 3 "$work/slurm.out")"
else
	tried=$((tried + BASH_REMATCH[1]))
	[ $status = 0 ] || fail other "Slurm: $(tail -n 1 "$work/slurm.out")"
fi
finish
