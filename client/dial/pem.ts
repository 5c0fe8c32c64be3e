/** Certificates and keys that are given as a file in PEM or as its text. */
import { readFile } from 'node:fs/promises'
import { ConnectionError } from '../errors.ts'

/** Leaves out what is not given. Throws ConnectionError BAD_TLS, which names the file. */
export async function readPem<K extends string>(given: { readonly [N in K]: string | undefined }) {
  const read: { [N in K]?: string } = {}
  for (const name of Object.keys(given) as K[]) {
    const text = given[name]
    if (text !== undefined) read[name] = await pemOf(name, text)
  }
  return read
}

async function pemOf(name: string, text: string): Promise<string> {
  if (text.includes('-----BEGIN ')) return text
  let read: string
  try {
    read = await readFile(text, 'utf8')
  } catch (error) {
    throw new ConnectionError('BAD_TLS', `\`tls.${name}\` cannot be read: ${(error as Error).message}`, {
      cause: error,
    })
  }
  if (read.includes('-----BEGIN ')) return read
  throw new ConnectionError('BAD_TLS', `\`tls.${name}\`: no PEM is in ${text}`)
}
