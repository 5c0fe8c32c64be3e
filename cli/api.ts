/** Asks the HTTP API of a server that is Prometheus', and says what is wrong if it does not answer. */
import { ExitCode, Failure } from './failure.ts'
import { printable } from './format.ts'
import { type FormRequest, postForm, postWithToken } from './http.ts'
import { type Terminal, withProgress } from './terminal.ts'

/** What the option --url of a command says that asks this API. */
export const API_URL =
  'http:// or https:// URL of the server (CINNABAR_URL if it is one; default: `listen.http` of the configuration)'

const READ_HEADERS = {
  'content-type': 'application/x-protobuf',
  'content-encoding': 'snappy',
  'x-prometheus-remote-read-version': '0.1.0',
} as const

interface ApiAnswer {
  readonly status?: unknown
  readonly error?: unknown
  readonly data?: unknown
  readonly warnings?: readonly string[]
  readonly infos?: readonly string[]
}

/** Resolves to the `data` of an answer; what is remarkable is noted. Rejects with Failure. */
export async function askApi(
  request: FormRequest,
  form: URLSearchParams,
  tokenFrom: string,
  terminal: Terminal,
): Promise<unknown> {
  const interrupted = new AbortController()
  const undo = terminal.onInterrupt(() => interrupted.abort())
  try {
    const answering = postForm(request, form, interrupted.signal)
    const { status, body } = await withProgress(terminal, 'waiting for the answer', answering)
    const answer = parsed(body)
    if (answer.status === 'success' && answer.data !== undefined) {
      for (const remark of [...(answer.warnings ?? []), ...(answer.infos ?? [])]) terminal.note(printable(remark))
      return answer.data
    }
    throw failureOf(request, status, answer, tokenFrom)
  } finally {
    undo()
  }
}

/** Sends a request of remote read, and resolves to the body of the answer. Rejects with Failure. */
export async function postRead(
  request: Omit<FormRequest, 'path'>,
  asked: Uint8Array,
  tokenFrom: string,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const form = { headers: READ_HEADERS, body: asked }
  const { status, body, bytes } = await postWithToken({ ...request, path: '/api/v1/read' }, form, signal)
  if (status === 200) return bytes
  throw failureOf(request, status, parsed(body), tokenFrom)
}

function failureOf(
  { url }: Pick<FormRequest, 'url'>,
  status: number,
  { error }: ApiAnswer,
  tokenFrom: string,
): Failure {
  const why = typeof error === 'string' ? error : `HTTP ${status}, and no answer of such a server`
  const lines = [why, adviceFor(status), `Used: ${url}, token from ${tokenFrom}`]
  return new Failure(status === 400 ? ExitCode.USAGE : ExitCode.FAILED, lines.filter((line) => line !== '').join('\n'))
}

function parsed(body: string): ApiAnswer {
  try {
    return Object(JSON.parse(body)) as ApiAnswer
  } catch {
    return {}
  }
}

function adviceFor(status: number): string {
  if (status === 401)
    return 'The token was revoked, has expired, or does not belong to this server: `cinnabar token list`, run by an admin, shows which'
  return status === 404 ? 'The address must be that of `listen.http` or `listen.https` of the server: see --url' : ''
}
