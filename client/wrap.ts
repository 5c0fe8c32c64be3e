/** WRAP [MON 12]: puts a layer under a connection. No browser has any. */
import type { Connection } from './connection.ts'
import { ConnectionError } from './errors.ts'
import type { Layer, Transport } from './transport.ts'

/** Nothing may be sent before it settles. Rejects with StatusError, ConnectionError; there is no going on without then. */
export async function putOn(connection: Connection, transport: Transport, layer: Layer): Promise<void> {
  const { layer: offered } = await connection.ready
  const refuse = (why: string) => new ConnectionError('NO_LAYER', `${connection.peer}: ${why}`)
  if (!transport.wrap) throw refuse(`layers such as ${layer} cannot be put on from here`)
  if (!offered.includes(layer)) {
    const others = offered.length === 0 ? 'it offers none' : `it offers ${offered.join(', ')}`
    throw refuse(`the producer does not offer the layer ${layer} that was asked for (${others})`)
  }
  let wrapped: Promise<void> | undefined
  await connection.request('WRAP', { layer }, () => {
    wrapped = begin(connection, transport, layer)
    // Looked at below; meanwhile it may fail.
    wrapped.catch(() => {})
  })
  await wrapped
}

/** While the response is read: what stands behind it is the layer's. */
async function begin(connection: Connection, transport: Transport, layer: Layer): Promise<void> {
  const rest = connection.cut()
  if (layer === 'deflate') connection.keepSecretsApart()
  else {
    if (rest.length > 0) {
      throw new ConnectionError(
        'PROTOCOL',
        `${connection.peer}: the producer said something in the clear behind its response to WRAP; somebody may be in between`,
      )
    }
    connection.forget()
  }
  await transport.wrap?.(layer, rest)
}
