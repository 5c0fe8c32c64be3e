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

/** The code of an error of the system; undefined if it has none. */
export function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** Reports an error of the storage in its own words: throws Failure. To import the class of the error would load the storage. */
export function orStorageFailure<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error && error.name === 'StorageError')) throw error
    throw new Failure(ExitCode.FAILED, error.message, { cause: error })
  }
}
