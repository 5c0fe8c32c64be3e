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

/** Makes the tree at a path that does not exist, with the dependencies of this tree if they are the same. */
export async function addTree(commit: string, path: string, here: Surroundings): Promise<void> {
  await run(here, 'git', 'worktree', 'add', '--quiet', '--detach', path, commit)
  const there = { ...here, cwd: path }
  const [ours, theirs] = [HERE, path].map((root) => readFileSync(join(root, 'package-lock.json'), 'utf8'))
  if (ours === theirs) symlinkSync(realpathSync(join(HERE, 'node_modules')), join(path, 'node_modules'))
  else await run(there, 'npm', 'install')
  await run(there, 'npm', 'run', 'build')
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
