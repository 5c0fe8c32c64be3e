/** Processes of this machine, from /proc: what a program has left behind. */
import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** Z: a zombie. */
  readonly state: string
}

export function processes(): ProcessEntry[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (entryOf(Number(name)) ?? []) : []))
}

function entryOf(pid: number): ProcessEntry | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Behind the name, which may hold anything.
    const [state = '', parent, group] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { pid, parent: Number(parent), group: Number(group), state }
  } catch {
    return undefined
  }
}

/** Those of process groups that still run, or that this process has to reap; looks again for a while. Others reap what they have adopted when they like. */
export async function leftOf(groups: ReadonlySet<number>, patienceMs = 60_000): Promise<ProcessEntry[]> {
  const end = performance.now() + patienceMs
  for (;;) {
    const left = processes().filter((entry) => groups.has(entry.group) && !isAdoptedZombie(entry))
    if (left.length === 0 || performance.now() > end) return left
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function isAdoptedZombie({ parent, state }: ProcessEntry): boolean {
  return state === 'Z' && parent !== process.pid
}

/** Zombies that this process has to reap. */
export function zombies(): ProcessEntry[] {
  return processes().filter(({ parent, state }) => parent === process.pid && state === 'Z')
}
