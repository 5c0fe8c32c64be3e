/** A program that ends by itself, such as a compiler or a script. */
import { type ExecFileOptions, execFile } from 'node:child_process'

export interface Ended {
  readonly code: number
  /** Standard output, then standard error. */
  readonly out: string
}

/** Runs a program; one that fails, or that is not there, has a code other than 0. */
export function runToEnd(
  file: string,
  args: readonly string[],
  options: Pick<ExecFileOptions, 'cwd' | 'env'>,
): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(file, args, { ...options, maxBuffer: 2 ** 26 }, (error, out, errors) =>
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, out: out + errors }),
    )
  })
}
