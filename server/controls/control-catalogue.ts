/** The controls that an identity can see: those of the server, and those that appear and disappear at run time. */
import type { Identity } from '../../auth/permissions.ts'
import type { Control, ControlSource } from './control.ts'

/** Whether an identity may run a control with some arguments; only then the catalogue shows it. */
export type IsShown = (identity: Identity, control: string) => boolean

export class ControlCatalogue {
  readonly #own = new Map<string, Control>()
  readonly #sources: ControlSource[] = []
  readonly #isShown: IsShown

  constructor(isShown: IsShown) {
    this.#isShown = isShown
  }

  add(own: readonly Control[], sources: readonly ControlSource[]): void {
    for (const control of own) this.#own.set(control.name, control)
    this.#sources.push(...sources)
  }

  /** The tenants that a control is for; undefined if it is for all of them. */
  tenantsOf(name: string): readonly string[] | undefined {
    const source = this.#sources.find(({ prefix }) => name.startsWith(prefix))
    return source === undefined ? this.#own.get(name)?.tenants : source.tenants
  }

  /** The controls that an identity can see, and undefined for each that it cannot: there may be thousands. */
  *visible(identity: Identity): Generator<Control | undefined> {
    for (const controls of [this.#own.values(), ...this.#sources.map((source) => source.of(identity))]) {
      for (const control of controls) yield this.#isVisible(control, identity) ? control : undefined
    }
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
