/** `producer.controls`: the controls an identity is shown. */

import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { typeName } from '../../../protocol/monitor/json.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { recordsOf, matcherOf } from './metrics.ts'
import type { ProducerView } from './sensor.ts'

const { STRING, BOOLEAN, ARRAY, REC } = BasicType

/** What the catalogue shows of a control. */
export interface ControlShape {
  readonly name: string
  readonly description: string
  readonly parameters: readonly { name: string; type: BasicType; optional?: boolean; description: string }[]
}

export function controlsView(visible: (identity: Identity) => readonly ControlShape[]): ProducerView {
  return {
    metric: {
      name: 'producer.controls',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'The controls you may be allowed to run.',
      parameters: [{ name: 'match', type: STRING, description: 'Only names that match this pattern.' }],
    },
    check(args) {
      matcherOf(args)
    },
    show(identity, args) {
      const matches = matcherOf(args)
      const controls = new Map(visible(identity).map((control) => [control.name, control]))
      const names = [...controls.keys()].filter(matches).sort()
      return recordsOf(names, (name) => describe(controls.get(name) as ControlShape), Number.POSITIVE_INFINITY)
    },
  }
}

function describe({ name, description, parameters }: ControlShape): Field[] {
  const items = parameters.map((parameter) => [
    { name: 'name', type: STRING, value: parameter.name },
    { name: 'type', type: STRING, value: typeName(parameter.type) },
    { name: 'optional', type: BOOLEAN, value: parameter.optional ?? false },
    { name: 'description', type: STRING, value: parameter.description },
  ])
  return [
    { name: 'name', type: STRING, value: name },
    { name: 'description', type: STRING, value: description },
    { name: 'parameters', type: ARRAY, value: { element: REC, items } },
  ]
}
