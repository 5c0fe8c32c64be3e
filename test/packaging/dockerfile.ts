/** Reads what a Dockerfile and a .dockerignore say, as far as those of this tree use them. */

export interface Instruction {
  readonly name: string
  /** Everything after it, with continued lines as one. */
  readonly rest: string
}

export function instructionsOf(dockerfile: string): Instruction[] {
  return dockerfile
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({ name: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1).trim() }))
}

/** What the daemon is sent, by a file that leaves out everything else. */
export function sentPaths(dockerignore: string): string[] {
  const lines = dockerignore.split('\n')
  const all = lines.lastIndexOf('*')
  if (all < 0) throw new Error('.dockerignore does not leave out everything first')
  return lines.slice(all + 1).flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []))
}
