/** The node of a cluster on this machine, which answers the command line whether it leads or not, and also if no node leads. */
import { type NodeAccess, readNodePass } from '../server/cluster/node-pass.ts'
import { ExitCode, errorCode, Failure } from './failure.ts'

/** As JSON has it. */
export type JsonRecord = Readonly<Record<string, unknown>>

/** Founding a log takes a few elections of NATS. */
const DEADLINE_MS = 60_000

/** Undefined if there is none. Throws Failure if its file may not be read. */
export function findNode(dataDir: string): NodeAccess | undefined {
  try {
    return readNodePass(dataDir)
  } catch (error) {
    const why = `${(error as Error).message}: only the user who runs the server may read it`
    throw new Failure(ExitCode.FAILED, `the node on this machine cannot be asked: ${why}`, { cause: error })
  }
}

/** The answer of the node; undefined if it does not run. Rejects with Failure if it refuses, or answers nonsense. */
export async function askNode(node: NodeAccess, method: 'GET' | 'POST', path: string): Promise<JsonRecord | undefined> {
  const { url, secret, file } = node
  let response: Response
  let body: unknown
  try {
    const headers = { authorization: `Bearer ${secret}` }
    response = await fetch(url + path, { method, headers, signal: AbortSignal.timeout(DEADLINE_MS) })
    body = await response.json()
  } catch (error) {
    if (errorCode((error as Error).cause) === 'ECONNREFUSED') return undefined
    throw new Failure(
      ExitCode.FAILED,
      `the node at ${url} (from ${file}) does not answer: ${(error as Error).message}`,
      {
        cause: error,
      },
    )
  }
  const record = (typeof body === 'object' && body !== null ? body : {}) as JsonRecord
  if (response.ok) return record
  const reason = typeof record['error'] === 'string' ? record['error'] : `status ${response.status}`
  throw new Failure(ExitCode.FAILED, `the node at ${url} refused: ${reason}`)
}
