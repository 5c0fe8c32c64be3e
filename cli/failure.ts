/** Ends a command that did not succeed. The message is printed as it is; it is empty if nothing more is to be printed. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** 0 is success. UNKNOWN means that it is not known whether a control ran. `--help` lists the codes. */
export const ExitCode = { FAILED: 1, USAGE: 2, UNKNOWN: 3 } as const
