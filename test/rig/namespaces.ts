/** Network namespaces of Linux: networks of their own for processes of this machine. */
import { execFileSync } from 'node:child_process'

/** Why this process certainly cannot make one, as a sentence. */
export const namespacesMissing =
  process.platform !== 'linux'
    ? 'network namespaces exist on Linux only'
    : process.getuid?.() !== 0
      ? 'network namespaces are made by root only'
      : undefined

/** What `make` makes; or what is missing here for that, as a sentence. `needs`: what it needs beside root. */
export function madeOrMissing<T>(make: () => T, needs: string): T | string {
  if (namespacesMissing !== undefined) return namespacesMissing
  try {
    return make()
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? `${error.stderr ?? ''}`.trim() : ''
    const reason = said === '' && error instanceof Error ? error.message : said
    return `network namespaces cannot be made (${reason}): they need ${needs} and the permission`
  }
}

/** Runs the command `ip`; gives what it prints. */
export function ip(...words: readonly string[]): string {
  return execFileSync('ip', words, { encoding: 'utf8', stdio: 'pipe' })
}

/** The program and the arguments that run a command in a namespace. */
export function inNamespace(
  name: string,
  program: string,
  args: readonly string[],
): readonly [string, readonly string[]] {
  return ['ip', ['netns', 'exec', name, program, ...args]]
}
