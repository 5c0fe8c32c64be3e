/** Who is meant on the command line, as the controls of users and tokens take it. */
import { type Arguments, parseIdentity } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'

/** For help texts. */
export const IDENTITY = 'user, or tenant/user'

/** Throws Failure. */
export function whoIs(identity: string): Arguments {
  try {
    const { tenant, name } = parseIdentity(identity)
    return identity.includes('/') ? { user: name, tenant } : { user: name }
  } catch (error) {
    throw new Failure(ExitCode.USAGE, (error as Error).message, { cause: error })
  }
}
