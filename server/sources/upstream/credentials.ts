/** What the server shows to an upstream, from files that are read for each connection. Errors are for people, and hold no secret. */
import { readFile } from 'node:fs/promises'
import type { Proof } from '../../../client/credentials.ts'
import type { UpstreamTable } from './config.ts'

/** Throws Error. */
export async function proofOf({
  tokenFile,
  user,
  secretFile,
}: Pick<UpstreamTable, 'tokenFile' | 'user' | 'secretFile'>): Promise<Proof> {
  if (tokenFile !== undefined) return { token: await firstLineOf(tokenFile) }
  if (secretFile !== undefined) {
    // Its password is never sent: the upstream has to prove that it knows it, too.
    return { identity: user, password: await firstLineOf(secretFile), methods: ['scram-sha-256-plus', 'scram-sha-256'] }
  }
  return { certificate: true }
}

async function firstLineOf(path: string): Promise<string> {
  const [line = ''] = (await readFile(path, 'utf8')).split(/\r?\n/)
  if (line === '') throw new Error(`${path} is empty`)
  return line
}
