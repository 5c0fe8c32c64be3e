/** Python programs that use the library as it stands in this tree. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Child } from '../../support/child.ts'
import { type Ended, runToEnd } from '../../support/run-to-end.ts'

const ROOT = new URL('../../..', import.meta.url).pathname
export const PACKAGE = join(ROOT, 'packages/python')
export const HERE = join(ROOT, 'test/packages/python')

/** As after its installation. Warnings of the interpreter, such as of what is left open, are errors, and the tree stays as it is. */
const ENVIRONMENT = {
  PYTHONPATH: join(PACKAGE, 'src'),
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONWARNINGS: 'error',
}

/** What has to be installed before any of this can run; undefined if nothing is missing. */
export const missing = isInstalled()
  ? undefined
  : 'python3 (3.9 or newer) is missing; install it with `apt-get install --no-install-recommends python3`'
if (missing !== undefined) console.warn(`skipped: ${missing}`)

function isInstalled(): boolean {
  try {
    execFileSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** All tests of a folder. */
export function unittest(folder: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const options = { cwd: join(HERE, folder), env: { ...process.env, ...ENVIRONMENT, ...env } }
  return runToEnd('python3', ['-m', 'unittest', 'discover'], options)
}

export function start(program: string, args: readonly string[]): Child {
  return new Child('python3', [join(HERE, 'programs', program), ...args], { env: ENVIRONMENT })
}
