/** Which URLs can be dialled. */
import { ConnectionError } from '../errors.ts'

/** Throws ConnectionError BAD_URL. `schemes` as URL has them: `tcp:`. */
export function parseUrl(text: string, schemes: readonly string[]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // Not repeated in the message: a secret may stand in it, also where it does not parse.
  if (text.includes('@')) {
    throw new ConnectionError('BAD_URL', 'the URL names a user or password: give them apart from it')
  }
  if (!url?.hostname) {
    throw new ConnectionError('BAD_URL', `"${text}" is no URL like tcp://127.0.0.1:7650 or ws://127.0.0.1:7651/monitor`)
  }
  if (schemes.includes(url.protocol)) return url
  const known = schemes.map((scheme) => `${scheme}//`).join(', ')
  throw new ConnectionError('BAD_URL', `cannot dial ${url.protocol}// here: there is ${known}`)
}
