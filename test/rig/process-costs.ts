/** What a process has cost, whatever language it is written in: CPU time, memory and bytes written, from /proc (Linux only). */
import { readFileSync, writeFileSync } from 'node:fs'

/** USER_HZ, which is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

/** CPU seconds, user and system, since it began: of all its threads, or of one. */
export function cpuSecondsOf(pid: number, thread?: number): number {
  const stat = readFileSync(`${placeOf(pid, thread)}/stat`, 'utf8')
  // After the program's name, which may contain anything, come the state and then the numbers.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Its memory; `VmHWM`: the most since it began, or since `forgetPeak`. */
export function memoryMiB(pid: number, what: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  return Math.round(numberIn(`${placeOf(pid)}/status`, what) / 1024)
}

/** From now on its peak is the most since now. */
export function forgetPeak(pid: number): void {
  writeFileSync(`${placeOf(pid)}/clear_refs`, '5')
}

/** What it has caused to be written to block devices, in MiB. */
export function writtenMiBOf(pid: number): number {
  return numberIn(`${placeOf(pid)}/io`, 'write_bytes') / 2 ** 20
}

/** Bytes that a thread has handed to the kernel. */
export function handedOver(pid: number, thread: number): number {
  return numberIn(`${placeOf(pid, thread)}/io`, 'wchar')
}

function placeOf(pid: number, thread?: number): string {
  return thread === undefined ? `/proc/${pid}` : `/proc/${pid}/task/${thread}`
}

/** The number of a line `name: number`. */
function numberIn(file: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(file, 'utf8'))?.[1] ?? 0)
}
