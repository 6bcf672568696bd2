"""What an editor can ask for, one module a feature: functions of a snapshot that know no LSP types."""
