/** Controls that are run over a connection which may end at any moment. */
import { args, command, str, type } from '../../support/bytes.ts'
import { decoded, type Json } from '../../support/records.ts'
import { Link, type Listener, type User } from './link.ts'

/** The name, the type, and the value in XDR. */
export type Argument = readonly [string, number, Uint8Array]
export const text = (name: string, value: string): Argument => [name, type.string, str(value)]

export class LinkControls {
  readonly #link: Link
  readonly #waiting = new Map<number, (result: Json) => void>()

  private constructor(link: Link) {
    this.#link = link
    link.onMessage = (message) => {
      if (message.kind !== 'value') return
      this.#waiting.get(message.metric)?.(decoded(message))
      this.#waiting.delete(message.metric)
    }
  }

  /** Undefined if the server is gone before the login is done. */
  static async open(listener: Listener, user: User): Promise<LinkControls | undefined> {
    const link = await Link.open(listener, user)
    return link && new LinkControls(link)
  }

  /** The result; undefined if the connection ended before it came. Throws if the control may not run. */
  async run(control: string, ...list: readonly Argument[]): Promise<Json | undefined> {
    let result: Promise<Json> | undefined
    await this.#link.ok(
      (seq) => command.execute(seq, control, args(...list)),
      // The result may stand right after the response.
      ({ status, result: id }) => {
        if (status === 0) result = new Promise((resolve) => this.#waiting.set(id, resolve))
      },
    )
    return result && Promise.race([result, this.#link.ended.then(() => undefined)])
  }

  close(): void {
    this.#link.close()
  }
}

/** Runs controls as an admin, one after the other. Throws if one does not come to ok. */
export async function administer(
  listener: Listener,
  admin: User,
  controls: readonly (readonly [string, ...Argument[]])[],
): Promise<void> {
  const link = await LinkControls.open(listener, admin)
  if (link === undefined) throw new Error('the server is gone')
  try {
    for (const [name, ...list] of controls) {
      const { outcome, detail } = (await link.run(name, ...list)) ?? { detail: 'the server is gone' }
      if (outcome !== 'ok') throw new Error(`${name}: ${detail}`)
    }
  } finally {
    link.close()
  }
}
