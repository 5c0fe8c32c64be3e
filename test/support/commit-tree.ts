/** The tree of another commit of this repository, built: in a temporary worktree of git. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export const HERE = fileURLToPath(new URL('../..', import.meta.url))

/** Where a program runs. */
export interface Surroundings {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** Ends the program, with every process that it has started. */
  readonly interrupted?: AbortSignal
}

/** A package-lock.json: every package by its place. */
export interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>
}

/** Makes the tree at a path that does not exist, with the dependencies of this tree if all of its own are among them. */
export async function addTree(commit: string, path: string, here: Surroundings): Promise<void> {
  await run(here, 'git', 'worktree', 'add', '--quiet', '--detach', path, commit)
  const there = { ...here, cwd: path }
  if (hasAllOf(lockOf(HERE), lockOf(path)))
    symlinkSync(realpathSync(join(HERE, 'node_modules')), join(path, 'node_modules'))
  else await run(there, 'npm', 'install')
  await run(there, 'npm', 'run', 'build')
}

/** Whether each package of `theirs` is also in `ours`, at the same place and in the same version. */
export function hasAllOf(ours: Lock, theirs: Lock): boolean {
  return Object.entries(theirs.packages).every(([place, { version, integrity }]) => {
    const own = ours.packages[place]
    // At the root is the tree itself.
    return place === '' || (own?.version === version && own?.integrity === integrity)
  })
}

function lockOf(root: string): Lock {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
}

/** Does nothing if there is none. */
export async function removeTree(path: string): Promise<void> {
  await run({ cwd: HERE, env: process.env }, 'git', 'worktree', 'remove', '--force', path).catch(() => {})
}

/** Gives what a program writes to its standard output. Throws an Error if it fails or is interrupted. */
export async function run(
  { cwd, env, interrupted }: Surroundings,
  program: string,
  ...args: string[]
): Promise<string> {
  interrupted?.throwIfAborted()
  // A process group of its own, so that all of it can be ended.
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  const end = (): boolean => process.kill(-child.pid!, 'SIGTERM')
  interrupted?.addEventListener('abort', end)
  try {
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
    interrupted?.throwIfAborted()
    if (code !== 0) throw new Error(`${[program, ...args].join(' ')} ended with exit code ${code}:\n${output}`)
    return output
  } finally {
    interrupted?.removeEventListener('abort', end)
  }
}
