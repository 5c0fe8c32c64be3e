/** Certificates for tests, made anew each time: an authority, and what it issues. Elliptic curves, since RSA takes seconds. */
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'

export interface Issued {
  readonly cert: string
  readonly key: string
}

export interface Validity {
  readonly from?: Date
  readonly until?: Date
}

const HOUR_MS = 3_600_000
const CURVE = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const

function dates({ from, until }: Validity): { notBeforeDate: Date; notAfterDate: Date } {
  return {
    notBeforeDate: from ?? new Date(Date.now() - HOUR_MS),
    notAfterDate: until ?? new Date(Date.now() + 24 * HOUR_MS),
  }
}

export class Authority {
  readonly cert: string
  readonly #key: string

  private constructor({ cert, key }: Issued) {
    this.cert = cert
    this.#key = key
  }

  static async make(name = 'an authority'): Promise<Authority> {
    const made = await generate([{ name: 'commonName', value: name }], {
      ...CURVE,
      ...dates({}),
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true },
      ],
    })
    return new Authority({ cert: made.cert, key: made.private })
  }

  /** For these names and 127.0.0.1. */
  server(names: readonly string[] = ['localhost'], validity: Validity = {}): Promise<Issued> {
    return this.#issue('localhost', validity, [
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [...names.map((value) => ({ type: 2, value }) as const), { type: 7, ip: '127.0.0.1' }],
      },
    ])
  }

  /** For somebody who logs in with it. */
  client(commonName: string, validity: Validity = {}): Promise<Issued> {
    return this.#issue(commonName, validity, [{ name: 'extKeyUsage', clientAuth: true }])
  }

  /** For a node of a cluster, or a nats-server, which shows it at both ends. */
  node(names: readonly string[], ips: readonly string[] = []): Promise<Issued> {
    const altNames = [
      ...names.map((value) => ({ type: 2, value }) as const),
      ...ips.map((address) => ({ type: 7, ip: address }) as const),
    ]
    return this.#issue('a node', {}, [
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      { name: 'subjectAltName', altNames },
    ])
  }

  async #issue(
    commonName: string,
    validity: Validity,
    extensions: NonNullable<Parameters<typeof generate>[1]>['extensions'] & object,
  ): Promise<Issued> {
    const made = await generate([{ name: 'commonName', value: commonName }], {
      ...CURVE,
      ...dates(validity),
      ca: { cert: this.cert, key: this.#key },
      extensions: [{ name: 'basicConstraints', cA: false }, ...extensions],
    })
    return { cert: made.cert, key: made.private }
  }
}

/** A directory of files that an operator would name. */
export class OperatorDirectory {
  readonly path = mkdtempSync(join(tmpdir(), 'cinnabar-tls-'))

  /** As operators should write: another file, moved into place. */
  write(name: string, text: string): string {
    const path = join(this.path, name)
    writeFileSync(`${path}.new`, text)
    chmodSync(`${path}.new`, 0o600)
    renameSync(`${path}.new`, path)
    return path
  }

  /** Gives the paths. */
  server({ cert, key }: Issued): { cert: string; key: string } {
    return { cert: this.write('server.pem', cert), key: this.write('server.key', key) }
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
