/** The controls that an identity can see: those of the server, and those that appear and disappear at run time. */
import type { Identity } from '../../auth/permissions.ts'
import type { Control, ControlSource } from './control.ts'

/** Whether an identity may run a control with some arguments; only then the catalogue shows it. */
export type IsShown = (identity: Identity, control: string) => boolean

export class ControlCatalogue {
  readonly #own: ReadonlyMap<string, Control>
  readonly #sources: readonly ControlSource[]
  readonly #isShown: IsShown

  constructor(own: readonly Control[], sources: readonly ControlSource[], isShown: IsShown) {
    this.#own = new Map(own.map((control) => [control.name, control]))
    this.#sources = sources
    this.#isShown = isShown
  }

  /** The controls that an identity can see. */
  visible(identity: Identity): Control[] {
    const all = [...this.#own.values(), ...this.#sources.flatMap((source) => [...source.of(identity)])]
    return all.filter((control) => this.#isVisible(control, identity))
  }

  /** Returns undefined if the control does not exist or is not shown to the identity. */
  find(name: string, identity: Identity): Control | undefined {
    let control = this.#own.get(name)
    for (const source of this.#sources) control ??= source.find(name, identity)
    return control && this.#isVisible(control, identity) ? control : undefined
  }

  #isVisible({ name, tenants }: Control, identity: Identity): boolean {
    if (tenants !== undefined && !tenants.includes(identity.tenant)) return false
    return this.#isShown(identity, name)
  }
}
