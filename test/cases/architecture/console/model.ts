// A model is below everything that shows it.
import './app.ts'
import './parts/table.ts'
import './views/other.ts'

export const model = 1
