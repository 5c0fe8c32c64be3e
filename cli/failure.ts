/** How a command ends that did not do what it was asked. The message is printed as it is; empty where all has been said. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** 0 is success. UNKNOWN: whether a control did what it was told cannot be known. `--help` tells them. */
export const ExitCode = { FAILED: 1, USAGE: 2, UNKNOWN: 3 } as const
