"""Operations on what-ifs: running one, and the results that were saved."""
