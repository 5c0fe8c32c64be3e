/** The field of an expression, with the editor in it as soon as that is loaded. */

import type { Ref } from 'preact'
import { useEffect, useImperativeHandle, useRef, useState } from 'preact/hooks'
import type { Completion } from '../completion.ts'
import type { EvaluationProblem } from '../expressions.ts'
import type { ExpressionEditing } from './promql-editor.ts'
import { Loading, Problem } from './state.tsx'

/** What is in the field now. */
export interface ExpressionText {
  readonly text: string
  focus(): void
}

interface ExpressionFieldProps {
  readonly label: string
  /** What was asked last: the text begins with it, and is set to it whenever it changes. */
  readonly expr: string
  readonly completion: Completion
  readonly problem: EvaluationProblem | undefined
  /** Given the text. */
  readonly onRun: (text: string) => void
  readonly field: Ref<ExpressionText>
}

export function ExpressionField({ label, expr, completion, problem, onRun, field }: ExpressionFieldProps) {
  const place = useRef<HTMLDivElement>(null)
  const [editor, setEditor] = useState<ExpressionEditing>()
  const [failure, setFailure] = useState('')
  const run = useRef(onRun)
  run.current = onRun
  const isFocusWanted = useRef(false)
  useEffect(() => {
    let opened: ExpressionEditing | undefined
    let isOver = false
    import('./promql-editor.ts').then(
      ({ openEditor }) => {
        if (isOver || place.current === null) return
        const editing = openEditor(place.current, {
          text: expr,
          label,
          completion,
          onRun: () => run.current(editing.text),
        })
        opened = editing
        setEditor(editing)
        if (isFocusWanted.current) editing.focus()
      },
      () => setFailure('The editor could not be loaded: load the page again.'),
    )
    return () => {
      isOver = true
      opened?.end()
    }
  }, [label, completion])
  useEffect(() => {
    if (editor !== undefined && editor.text !== expr) editor.setText(expr)
  }, [editor, expr])
  useEffect(() => editor?.mark(problem?.position), [editor, problem])
  useImperativeHandle(
    field,
    () => ({
      get text() {
        return editor?.text ?? expr
      },
      focus() {
        isFocusWanted.current = true
        editor?.focus()
      },
    }),
    [editor, expr],
  )
  return (
    <>
      <div class="expression" ref={place} />
      {editor === undefined && failure === '' ? <Loading what="the editor" /> : null}
      <Problem text={failure} />
    </>
  )
}
