/** A single request over HTTP, on Node: with the options of TLS that connections have. */
import { type ClientRequest, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { ConnectionError } from '../errors.ts'
import type { Post, Posted } from '../publish.ts'
import { reasonOf } from './stream.ts'
import { clientTls, handshakeError } from './tls.ts'

/** Answers are short; more of one is not read. */
const MAX_BODY_BYTES = 65_536

export const post: Post = async (url, headers, body, signal, options) => {
  const isTls = url.protocol === 'https:'
  const tls = isTls ? await clientTls(url, options) : {}
  signal.throwIfAborted()
  const bytes = Buffer.from(body)
  const given = {
    method: 'POST',
    headers: { ...headers, 'content-length': bytes.length },
    signal,
    agent: false,
    ...tls,
  }
  const request = isTls ? begin(url, () => requestHttps(url, given)) : requestHttp(url, given)
  return new Promise((resolve, reject) => {
    request.once('error', (error) => reject(isTls ? handshakeError(url, error) : unreachable(url, error)))
    // Otherwise 101 would end the connection, and be no answer and no error.
    request.once('upgrade', ({ statusCode: status = 0 }, socket) => {
      socket.destroy()
      resolve({ status, retryAfter: undefined, body: '' })
    })
    request.once('response', (response) => {
      const chunks: Buffer[] = []
      let length = 0
      response.on('data', (chunk: Buffer) => {
        if (length < MAX_BODY_BYTES) chunks.push(chunk)
        length += chunk.length
      })
      response.once('error', (error) => reject(unreachable(url, error)))
      response.once('end', () => {
        const { statusCode: status = 0, headers: answered } = response
        const posted: Posted = { status, retryAfter: answered['retry-after'], body: Buffer.concat(chunks).toString() }
        resolve(posted)
      })
    })
    request.end(bytes)
  })
}

/** Throws ConnectionError BAD_TLS for options that do not fit together, such as a key for another certificate. */
function begin(url: URL, make: () => ClientRequest): ClientRequest {
  try {
    return make()
  } catch (error) {
    throw new ConnectionError('BAD_TLS', `cannot connect to ${url.origin}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function unreachable(url: URL, error: Error): ConnectionError {
  return new ConnectionError('UNREACHABLE', `cannot reach ${url.origin}: ${reasonOf(error)}`, { cause: error })
}
