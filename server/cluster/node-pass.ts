/**
 * `node.pass`: the file in the data directory by which the command line finds the node on this machine, and shows that it may use
 * it. Whoever can read the file is the user who runs the server, or root. It has two lines, a secret and the URL of the listener,
 * and both are made anew at each start.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const PASS_FILE = 'node.pass'
const SECRET_BYTES = 32

/** How a node on this machine is reached. */
export interface NodeAccess {
  /** Without a slash at its end. */
  readonly url: string
  /** For the header Authorization: Bearer. */
  readonly secret: string
  /** Where it was read. */
  readonly file: string
}

export class NodePass {
  readonly #file: string
  readonly #secret = randomBytes(SECRET_BYTES).toString('base64url')

  constructor(dataDir: string) {
    this.#file = resolve(dataDir, PASS_FILE)
  }

  /** Nobody reads half of it. Throws the error of the file system. */
  write(url: string): void {
    const part = `${this.#file}.new`
    // Anew: writing into a file that is there would keep its mode.
    rmSync(part, { force: true })
    writeFileSync(part, `${this.#secret}\n${url}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(part, this.#file)
  }

  remove(): void {
    rmSync(this.#file, { force: true })
  }

  /** Whether a header Authorization has the secret. */
  isIn(authorization: string | undefined): boolean {
    const [, given = ''] = /^Bearer +(\S+)$/i.exec(authorization ?? '') ?? []
    return timingSafeEqual(digest(given), digest(this.#secret))
  }
}

/** Undefined if no node has its data in the directory. Throws the error of the file system if the file cannot be read. */
export function readNodePass(dataDir: string): NodeAccess | undefined {
  const file = join(resolve(dataDir), PASS_FILE)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const [secret = '', url = ''] = text.split('\n')
  return { secret, url, file }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
