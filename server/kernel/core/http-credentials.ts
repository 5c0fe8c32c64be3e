/**
 * What this server shows to others when it makes requests of HTTP, from files that are read for each request, so that they can
 * be renewed at any time. Errors are for people, and hold no secret.
 */
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { isIP } from 'node:net'

const TOKEN = /^[\x21-\x7e]+$/

/** Gives the contents of a file by its path: those of this machine, or others that stand for them. */
export type ReadContents = (path: string) => Promise<string>

/** Those of this machine. */
export const contentsOf: ReadContents = (path) => readFile(path, 'utf8')

export interface CredentialFiles {
  readonly tokenFile?: string | undefined
  readonly username?: string | undefined
  readonly passwordFile?: string | undefined
  /** `contentsOf` without it. */
  readonly read?: ReadContents | undefined
}

export interface TlsPaths {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** The name in the certificate of the other end, if it is not that of the URL. */
  readonly serverName?: string | undefined
  /** `contentsOf` without it. */
  readonly read?: ReadContents | undefined
}

/** The header `Authorization`; undefined if nothing is shown. */
export async function authorizationFrom(files: CredentialFiles): Promise<string | undefined> {
  const { tokenFile, username, passwordFile, read = contentsOf } = files
  if (tokenFile !== undefined) {
    const token = await firstLineOf(read(tokenFile))
    if (!TOKEN.test(token)) throw new Error(`${tokenFile} holds no token: it is empty, or has blanks in it`)
    return `Bearer ${token}`
  }
  if (passwordFile === undefined) return undefined
  return `Basic ${Buffer.from(`${username}:${await firstLineOf(read(passwordFile))}`).toString('base64')}`
}

/** The options of a TLS connection to a host. */
export async function tlsFrom(paths: TlsPaths, hostname: string): Promise<RequestOptions> {
  const { ca, cert, key, serverName, read: contents = contentsOf } = paths
  const named = serverName ?? (isIP(hostname.replace(/^\[(.*)\]$/, '$1')) === 0 ? hostname : undefined)
  const files = Object.entries({ ca, cert, key }).filter(([, path]) => path !== undefined)
  const read = await Promise.all(
    files.map(async ([name, path]) => [name, Buffer.from(await contents(path as string))] as const),
  )
  return {
    ...Object.fromEntries(read),
    ...(named !== undefined && { servername: named }),
    // Otherwise an environment variable could switch it off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
  }
}

async function firstLineOf(contents: Promise<string>): Promise<string> {
  const [line = ''] = (await contents).split(/\r?\n/)
  return line
}
